#include "serve/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

namespace heed::cli {

namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";

// The page restricts itself what it may load; these restrictions exist as headers only.
constexpr std::string_view kSecurityHeaders =
    "Content-Security-Policy: frame-ancestors 'none'\r\n"
    "X-Frame-Options: DENY\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

// Headers that affect the answer. A request with two of one kind is refused, because they can be
// read in two ways.
constexpr std::array<std::string_view, 7> kOnlyOnce{
    "host",  "origin", "sec-fetch-site", "content-type", "content-length", "transfer-encoding",
    "expect"};

const char* reason_of(int status) {
  switch (status) {
    case kOk:
      return "OK";
    case kBadRequest:
      return "Bad Request";
    case kForbidden:
      return "Forbidden";
    case kNotFound:
      return "Not Found";
    case kMethodNotAllowed:
      return "Method Not Allowed";
    case kRequestTimeout:
      return "Request Timeout";
    case kLengthRequired:
      return "Length Required";
    case kPayloadTooLarge:
      return "Content Too Large";
    case kUriTooLong:
      return "URI Too Long";
    case kUnsupportedMediaType:
      return "Unsupported Media Type";
    case kExpectationFailed:
      return "Expectation Failed";
    case kHeadersTooLarge:
      return "Request Header Fields Too Large";
    case kServiceUnavailable:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

// True if the text is a token of RFC 9110: methods and header names are tokens.
bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != kMarks.npos;
  });
}

bool is_visible_ascii(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= ' ' && byte != 0x7f);
  });
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::string in_lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

}  // namespace

bool HttpRequest::has(std::string_view name) const {
  return std::any_of(headers.begin(), headers.end(),
                     [name](const auto& header) { return header.first == name; });
}

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [name](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::string_view() : found->second;
}

std::string_view HttpRequest::path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

HttpAnswer error_answer(int status, std::string_view message) {
  constexpr bool kAsciiOnly = true;
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  const nlohmann::json json{{"error", message}};
  HttpAnswer answer;
  answer.status = status;
  answer.body = std::make_shared<const std::string>(json.dump(-1, ' ', kAsciiOnly, kReplace));
  return answer;
}

std::string head_of(const HttpAnswer& answer) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n{}{}\r\n",
      answer.status, reason_of(answer.status), answer.type, answer.body->size(), kSecurityHeaders,
      answer.allowed == nullptr ? "" : fmt::format("Allow: {}\r\n", answer.allowed));
}

bool RequestReader::take(std::string_view bytes) {
  if (!has_head_ && !refusal_) {
    const std::size_t searched = head_.size() - std::min(head_.size(), kHeadEnd.size() - 1);
    const std::size_t had = head_.size();
    head_ += bytes.substr(0, kMaxHeadBytes - had);
    const std::size_t end = head_.find(kHeadEnd, searched);
    if (head_.find(kLineEnd) >= kMaxLineBytes && head_.size() >= kMaxLineBytes) {
      refuse(kUriTooLong, fmt::format("expected a line of at most {} bytes", kMaxLineBytes));
    } else if (end != head_.npos) {
      bytes.remove_prefix(end + kHeadEnd.size() - had);
      head_.resize(end);
      has_head_ = true;
      read_head();
    } else if (head_.size() == kMaxHeadBytes) {
      refuse(kHeadersTooLarge, fmt::format("expected at most {} bytes of headers", kMaxHeadBytes));
    }
  }
  if (!has_head_ || refusal_) return refusal_.has_value();
  request_.body += bytes.substr(0, length_ - request_.body.size());
  return request_.body.size() == length_;
}

void RequestReader::read_head() {
  std::string_view rest = head_;
  for (bool is_first = true; !refusal_; is_first = false) {
    const std::size_t end = rest.find(kLineEnd);
    const std::string_view line = rest.substr(0, end);
    if (is_first) {
      read_line(line);
    } else {
      read_header(line);
    }
    if (end == rest.npos) break;
    rest.remove_prefix(end + kLineEnd.size());
  }
  if (!refusal_) find_length();
  std::string().swap(head_);
}

void RequestReader::read_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == line.npos || first == last || !is_token(line.substr(0, first)) ||
      !is_visible_ascii(line.substr(first + 1, last - first - 1)) ||
      (line.substr(last + 1) != "HTTP/1.1" && line.substr(last + 1) != "HTTP/1.0")) {
    return refuse(kBadRequest, "the request is not valid HTTP/1.1");
  }
  request_.method = line.substr(0, first);
  request_.target = line.substr(first + 1, last - first - 1);
}

void RequestReader::read_header(std::string_view line) {
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string name = in_lower_case(line.substr(0, colon));
  const std::string_view value = without_blanks(line.substr(std::min(colon + 1, line.size())));
  if (colon == line.size() || !is_token(name) || !is_field_value(value)) {
    return refuse(kBadRequest, "a header is not valid HTTP/1.1");
  }
  const bool is_single = std::find(kOnlyOnce.begin(), kOnlyOnce.end(), name) != kOnlyOnce.end();
  const bool stands_already = std::any_of(request_.headers.begin(), request_.headers.end(),
                                          [&](const auto& other) { return other.first == name; });
  if (is_single && stands_already) {
    return refuse(kBadRequest, fmt::format("there are two headers {}", name));
  }
  request_.headers.emplace_back(name, value);
}

void RequestReader::find_length() {
  if (request_.has("transfer-encoding"))
    return refuse(kLengthRequired, "expected a Content-Length");
  if (request_.has("expect")) return refuse(kExpectationFailed, "expected no header Expect");
  if (!request_.has("content-length")) return;
  const std::string_view digits = request_.header("content-length");
  const bool is_number = !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
  if (!is_number) return refuse(kBadRequest, "Content-Length is no number");
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), length_);
  if (parsed.ec != std::errc() || length_ > kMaxBodyBytes) {
    refuse(kPayloadTooLarge, fmt::format("expected at most {} bytes", kMaxBodyBytes));
  }
}

}  // namespace heed::cli
