// One request of HTTP/1.1 as it comes in, and one answer as it goes out; whatever carries them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed::cli {

enum HttpStatus {
  kOk = 200,
  kBadRequest = 400,
  kForbidden = 403,
  kNotFound = 404,
  kMethodNotAllowed = 405,
  kRequestTimeout = 408,
  kLengthRequired = 411,
  kPayloadTooLarge = 413,
  kUriTooLong = 414,
  kUnsupportedMediaType = 415,
  kExpectationFailed = 417,
  kHeadersTooLarge = 431,
  kInternalError = 500,
  kServiceUnavailable = 503,
};

struct HttpRequest {
  std::string method;
  std::string target;                                        // as it was sent: nothing is decoded
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;

  // The value of a header, by its name in lower case; empty where there is none.
  std::string_view header(std::string_view name) const;
  bool has(std::string_view name) const;
  // The target without what follows a question mark.
  std::string_view path() const;
};

struct HttpAnswer {
  int status = kOk;
  const char* type = "application/json";
  // Shared, so that a page is not copied for each of its readers.
  std::shared_ptr<const std::string> body = std::make_shared<const std::string>();
  const char* allowed = nullptr;  // the method that would do, where another was used
};

// {"error": message}.
HttpAnswer error_answer(int status, std::string_view message);

// The status line and the headers: with those that keep the answer out of other sites' pages, and
// `Connection: close`, for a connection carries one request.
std::string head_of(const HttpAnswer& answer);

// Reads one request, of which no more than these bytes are kept. What has a body must say how long
// it is: chunks are refused, so that nobody sees the end of a request elsewhere than here.
class RequestReader {
 public:
  static constexpr std::size_t kMaxLineBytes = 8 * 1024;   // of the request line
  static constexpr std::size_t kMaxHeadBytes = 16 * 1024;  // of the request line and all headers
  static constexpr std::size_t kMaxBodyBytes = 64 * 1024;  // 512 long words need less

  // Takes the next bytes; what follows the request is dropped. Returns whether the request is
  // whole or refused, after which there is nothing more to take.
  bool take(std::string_view bytes);

  // Of a request that is not refused.
  const HttpRequest& request() const { return request_; }
  const std::optional<HttpAnswer>& refusal() const { return refusal_; }

 private:
  void refuse(int status, std::string_view message) { refusal_ = error_answer(status, message); }
  void read_head();
  void read_line(std::string_view line);
  void read_header(std::string_view line);
  void find_length();

  std::string head_;
  bool has_head_ = false;
  std::size_t length_ = 0;  // of the body
  HttpRequest request_;
  std::optional<HttpAnswer> refusal_;
};

}  // namespace heed::cli
