// Parses HTTP/1.1 requests and formats answers, independent of the transport.
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
  std::string target;                                        // as sent, not decoded
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;

  // Returns the value of a header by its lower-case name; empty where it is missing.
  std::string_view header(std::string_view name) const;
  bool has(std::string_view name) const;
  // Returns the target up to a question mark.
  std::string_view path() const;
};

struct HttpAnswer {
  int status = kOk;
  const char* type = "application/json";
  // Shared, so that a page is not copied for each client.
  std::shared_ptr<const std::string> body = std::make_shared<const std::string>();
  const char* allowed = nullptr;  // the method to use instead, where another was used
};

// Returns an answer with the body {"error": message}.
HttpAnswer error_answer(int status, std::string_view message);

// Returns the status line and headers, including those that keep the answer out of pages of other
// sites, and `Connection: close`, because a connection carries one request.
std::string head_of(const HttpAnswer& answer);

// Reads one request and keeps at most the bytes below. A request with a body must give its length:
// chunked bodies are refused, so that no proxy sees the end of a request elsewhere.
class RequestReader {
 public:
  static constexpr std::size_t kMaxLineBytes = 8 * 1024;   // of the request line
  static constexpr std::size_t kMaxHeadBytes = 16 * 1024;  // of the request line and all headers
  static constexpr std::size_t kMaxBodyBytes = 64 * 1024;  // 512 long words need less

  // Takes the next bytes; bytes after the request are dropped. Returns true once the request is
  // complete or refused; it takes no more bytes then.
  bool take(std::string_view bytes);

  // Valid if the request is not refused.
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
