#include "serve/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <thread>
#include <utility>

#include "heed/error.h"
#include "heed/viz/explorer.h"

namespace heed::cli {

namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kPagePath = "/";
constexpr const char* kAttentionPath = "/api/attention";
constexpr int kThreads = 2 * ExplorerServer::kMaxRequests;

enum Status {
  kForbidden = 403,
  kNotFound = 404,
  kMethodNotAllowed = 405,
  kPayloadTooLarge = 413,
  kUnsupportedMediaType = 415,
  kInternalError = 500,
  kUnavailable = 503,
};

void send(httplib::Response& response, const Answer& answer) {
  response.status = answer.status;
  response.set_content(answer.json, kJson);
}

void refuse(httplib::Response& response, int status, std::string_view message) {
  send(response, error_answer(status, message));
}

// The page says itself what it may load; these are what only a header can say.
httplib::Headers security_headers() {
  return {{"Content-Security-Policy", "frame-ancestors 'none'"},
          {"X-Frame-Options", "DENY"},
          {"X-Content-Type-Options", "nosniff"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

// The library's own options would let a second server share the port.
void set_socket_options(socket_t socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

// A pipe into which the first SIGINT or SIGTERM writes; a second ends the program. Blocking the
// signals and waiting for them would not do: libraries start threads before main().
int signal_pipe[2] = {-1, -1};

extern "C" void write_to_pipe(int /*signal*/) {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(signal_pipe[1], &byte, 1);
}

void wait_for_pipe() {
  char byte = 0;
  while (::read(signal_pipe[0], &byte, 1) < 0 && errno == EINTR) {
  }
}

void catch_signals() {
  if (::pipe2(signal_pipe, O_CLOEXEC) != 0) throw IoError("no pipe can be made for signals");
  struct sigaction action {};
  action.sa_handler = write_to_pipe;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

// Counts those that are inside; beyond the limit one is refused.
class Gate {
 public:
  explicit Gate(std::atomic<int>& inside)
      : inside_(inside), is_open_(inside.fetch_add(1) < ExplorerServer::kMaxRequests) {}
  ~Gate() { inside_.fetch_sub(1); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  bool is_open() const { return is_open_; }

 private:
  std::atomic<int>& inside_;
  bool is_open_;
};

}  // namespace

class ExplorerServer::Implementation {
 public:
  explicit Implementation(const Address& address)
      : address_(address), page_(explorer_page({{explorer_example()}, true})) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_socket_options(set_socket_options);
    server_.set_default_headers(security_headers());
    server_.set_keep_alive_timeout(1);  // an idle browser delays the end by no more
    server_.set_read_timeout(5);
    server_.set_pre_routing_handler(
        [this](const auto& request, auto& response) { return check(request, response); });
    server_.set_error_handler(httplib::Server::HandlerWithResponse(describe_error));
    server_.set_exception_handler([](const auto&, auto& response, const std::exception_ptr&) {
      refuse(response, kInternalError, "this sentence could not be computed");
    });
    server_.Get(kPagePath, [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(page_, "text/html; charset=utf-8");
    });
    server_.Post(
        kAttentionPath,
        [this](const httplib::Request& request, httplib::Response& response,
               const httplib::ContentReader& reader) { answer(request, response, reader); });
  }

  httplib::Server& server() { return server_; }

 private:
  using Handled = httplib::Server::HandlerResponse;

  // Before the library looks at a path or reads a body, which it would do without limit.
  Handled check(const httplib::Request& request, httplib::Response& response) {
    const std::string host = request.get_header_value("Host");
    if (request.get_header_value_count("Host") != 1 || !is_own_host(host, address_)) {
      refuse(response, kForbidden, "the Host header does not name this server");
    } else if (!is_own_origin(request.get_header_value("Origin"), host)) {
      refuse(response, kForbidden, "the request comes from another site");
    } else if (request.path != kPagePath && request.path != kAttentionPath) {
      refuse(response, kNotFound, "there is only / and /api/attention");
    } else if (const char* allowed = request.path == kPagePath ? "GET" : "POST";
               request.method != allowed) {
      response.set_header("Allow", allowed);
      refuse(response, kMethodNotAllowed, fmt::format("expected {}", allowed));
    } else {
      return Handled::Unhandled;
    }
    return Handled::Handled;
  }

  // What the library refused itself: a line or a header that is malformed or too long.
  static Handled describe_error(const httplib::Request& /*request*/, httplib::Response& response) {
    if (response.body.empty()) refuse(response, response.status, "the request is not valid HTTP");
    return Handled::Handled;
  }

  void answer(const httplib::Request& request, httplib::Response& response,
              const httplib::ContentReader& reader) {
    const Gate gate(num_requests_);
    if (!gate.is_open()) {
      response.set_header("Retry-After", "1");
      return refuse(response, kUnavailable, "too many sentences at once; try again");
    }
    if (request.get_header_value("Content-Type").rfind(kJson, 0) != 0) {
      return refuse(response, kUnsupportedMediaType, "expected Content-Type: application/json");
    }
    std::string body;
    bool is_too_long = false;
    const bool is_whole = reader([&](const char* data, std::size_t size) {
      is_too_long = body.size() + size > kMaxBodyBytes;
      if (!is_too_long) body.append(data, size);
      return !is_too_long;
    });
    if (is_too_long) {
      return refuse(response, kPayloadTooLarge,
                    fmt::format("expected at most {} bytes", kMaxBodyBytes));
    }
    if (!is_whole) return refuse(response, kBadRequest, "the request ended too early");
    send(response, answer_attention(body));
  }

  const Address& address_;
  std::string page_;
  std::atomic<int> num_requests_ = 0;
  httplib::Server server_;
};

ExplorerServer::ExplorerServer(Address address)
    : address_(std::move(address)), implementation_(std::make_unique<Implementation>(address_)) {
  httplib::Server& server = implementation_->server();
  if (address_.port == 0) {
    address_.port = server.bind_to_any_port(address_.host);
    if (address_.port > 0) return;
  } else if (server.bind_to_port(address_.host, address_.port)) {
    return;
  }
  throw IoError(
      fmt::format("cannot listen at {}: the address is not one of this machine, or the port "
                  "is in use or not permitted",
                  url()));
}

ExplorerServer::~ExplorerServer() = default;

std::string ExplorerServer::url() const {
  const bool is_ipv6 = address_.host.find(':') != std::string::npos;
  return fmt::format("http://{}:{}/", is_ipv6 ? '[' + address_.host + ']' : address_.host,
                     address_.port);
}

void ExplorerServer::run(const std::function<void()>& announce) {
  catch_signals();
  announce();
  httplib::Server& server = implementation_->server();
  std::atomic<bool> has_ended = false;
  std::thread waiter([&] {
    wait_for_pipe();
    // stop() does nothing before the server runs.
    while (!has_ended && !server.is_running()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    server.stop();
  });
  server.listen_after_bind();
  has_ended = true;
  write_to_pipe(0);  // where the socket failed, nobody has
  waiter.join();
}

}  // namespace heed::cli
