#include "serve/requests.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "heed/core/error.h"
#include "heed/inspect/explorer.h"
#include "heed/inspect/sentence.h"
#include "io/json.h"

namespace heed::cli {

namespace {

constexpr std::int64_t kMaxRequestedHeads = 64;
constexpr int kHttpPort = 80;
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPagePath = "/";
constexpr std::string_view kAttentionPath = "/api/attention";

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

bool is_numeric_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  return (host == "::1" || host.starts_with("127.")) && is_numeric_address(host);
}

struct Host {
  std::string name;
  int port = 0;
};

// Parses "name", "name:port" or "[address]:port"; port −1 if it is invalid.
Host split_host(std::string_view header) {
  std::size_t end = header.find(':');
  std::string_view host = header.substr(0, end);
  if (!header.empty() && header.front() == '[') {
    end = std::min(header.find(']'), header.size() - 1) + 1;
    host = header.substr(1, end - 2);
  }
  if (end >= header.size()) return {lower_case(host), kHttpPort};
  const std::string_view digits = header.substr(end + 1);
  int port = -1;
  const auto [stopped, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool is_whole = error == std::errc() && stopped == digits.data() + digits.size();
  return {lower_case(host), is_whole && header[end] == ':' ? port : -1};
}

// Returns the value of an optional member. Throws InvalidArgument unless it is an integer in [low,
// high].
std::int64_t integer(const nlohmann::json& request, const char* name, std::int64_t fallback,
                     std::int64_t high) {
  const auto found = request.find(name);
  if (found == request.end()) return fallback;
  if (!found->is_number_integer() || *found < 0 || *found > high) {
    throw InvalidArgument(
        fmt::format("{} is {}, expected a whole number from 0 to {}", name, found->dump(), high));
  }
  return found->get<std::int64_t>();
}

inspect::SentenceSettings settings_of(const nlohmann::json& request) {
  inspect::SentenceSettings settings;
  settings.num_heads = integer(request, "heads", settings.num_heads, kMaxRequestedHeads);
  settings.seed = static_cast<std::uint64_t>(
      integer(request, "seed", 0, std::numeric_limits<std::uint32_t>::max()));
  if (settings.num_heads < 1 || settings.d_model % settings.num_heads != 0) {
    throw InvalidArgument(
        fmt::format("heads is {}, expected 1, 2, 4, 8, 16, 32 or 64", settings.num_heads));
  }
  return settings;
}

HttpAnswer answer_attention(std::string_view body) {
  const nlohmann::json request = io::parse_json(body);
  if (!request.is_object() || !request.contains("sentence") || !request["sentence"].is_string()) {
    return error_answer(kBadRequest, R"(expected a JSON object with a string "sentence")");
  }
  try {
    const auto attention =
        inspect::attend(request["sentence"].get<std::string>(), settings_of(request));
    return {.body = std::make_shared<const std::string>(
                explorer_json(inspect::to_explorer(attention)))};
  } catch (const InvalidArgument& error) {
    return error_answer(kBadRequest, error.what());
  }
}

}  // namespace

bool is_own_host(std::string_view host_header, int port) {
  const Host asked = split_host(host_header);
  return asked.port == port && is_loopback(asked.name);
}

bool is_own_origin(const HttpRequest& request) {
  if (request.has("origin") &&
      lower_case(request.header("origin")) != "http://" + lower_case(request.header("host"))) {
    return false;
  }
  const std::string_view site = request.header("sec-fetch-site");
  if (!request.has("sec-fetch-site") || site == "same-origin" || site == "none") return true;
  return request.path() == kPagePath && request.header("sec-fetch-mode") == "navigate" &&
         request.header("sec-fetch-dest") == "document";
}

bool is_computed(const HttpRequest& request, int port) {
  return request.method == "POST" && request.path() == kAttentionPath &&
         is_own_host(request.header("host"), port) && is_own_origin(request);
}

HttpAnswer answer_request(const HttpRequest& request, int port,
                          const std::shared_ptr<const std::string>& page) {
  const std::string_view host = request.header("host");
  if (!is_own_host(host, port)) {
    return error_answer(kForbidden, "the Host header does not name this server");
  }
  if (!is_own_origin(request)) {
    return error_answer(kForbidden, "the request comes from another site");
  }
  const bool is_page = request.path() == kPagePath;
  if (!is_page && request.path() != kAttentionPath) {
    return error_answer(kNotFound, "there is only / and /api/attention");
  }
  const char* allowed = is_page ? "GET" : "POST";
  if (request.method != allowed) {
    HttpAnswer answer = error_answer(kMethodNotAllowed, fmt::format("expected {}", allowed));
    answer.allowed = allowed;
    return answer;
  }
  if (is_page) return {.type = "text/html; charset=utf-8", .body = page};
  if (request.header("content-type").substr(0, kJson.size()) != kJson) {
    return error_answer(kUnsupportedMediaType, "expected Content-Type: application/json");
  }
  return answer_attention(request.body);
}

}  // namespace heed::cli
