#include "serve/http_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "heed/core/error.h"

namespace heed::cli {

namespace {

constexpr int kBacklog = 64;
// The kernel's buffer for a request that is not read yet, and for an answer that is not received
// yet.
constexpr int kSocketBytes = 128 * 1024;

void set_option(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Returns −1 where the port is unavailable. Accepted sockets inherit the buffer sizes.
platform::FileDescriptor listen_at(int port) {
  platform::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return socket;
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  set_option(socket.get(), SOL_SOCKET, SO_RCVBUF, kSocketBytes);
  set_option(socket.get(), SOL_SOCKET, SO_SNDBUF, kSocketBytes);
  const sockaddr_in address = loopback(port);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return platform::FileDescriptor(-1);
  }
  return socket;
}

}  // namespace

std::string url_of(int port) { return fmt::format("http://127.0.0.1:{}/", port); }

HttpServer::HttpServer(int port, HttpService service, const ConnectionTimes& times)
    : listener_(listen_at(port)), service_(std::move(service)), times_(times) {
  if (listener_.get() < 0) {
    throw IoError(
        fmt::format("cannot listen at {}: the port is in use or not permitted", url_of(port)));
  }
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
}

void HttpServer::run(int stop) {
  while (listener_.get() >= 0 || !connections_.empty()) {
    if (!wait(stop)) compute_one();
    remove_done();
  }
}

bool HttpServer::wait(int stop) {
  // poll() ignores negative descriptors.
  std::vector<pollfd> polled{{listener_.get() < 0 ? -1 : stop, POLLIN, 0},
                             {listener_.get(), POLLIN, 0}};
  for (const Connection& connection : connections_) {
    polled.push_back({connection.socket(), connection.events(), 0});
  }
  const int num_ready = ::poll(polled.data(), polled.size(), milliseconds_to_wait());
  if (num_ready < 0) {
    if (errno == EINTR) return true;
    throw IoError("cannot wait for connections");
  }
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const bool waits = connections_[i].state() == Connection::State::kWaiting;
    if (polled[i + 2].revents != 0 && waits) connections_[i].hang_up();
    if (polled[i + 2].revents != 0 && !waits) connections_[i].proceed(service_);
    if (Connection::Clock::now() >= connections_[i].deadline()) connections_[i].expire();
  }
  if (polled[0].revents != 0) {
    listener_ = platform::FileDescriptor(-1);
  } else if (polled[1].revents != 0) {
    accept_one();
  }
  return num_ready > 0;
}

// Returns the time until the first deadline; 0 where an answer is to be computed.
int HttpServer::milliseconds_to_wait() const {
  if (connections_.empty()) return -1;
  auto nearest = Connection::Clock::time_point::max();
  for (const Connection& connection : connections_) {
    if (connection.state() == Connection::State::kWaiting) return 0;
    nearest = std::min(nearest, connection.deadline());
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(nearest - Connection::Clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

// Answers the request that has waited longest. The newest beyond kMaxWaiting are turned away.
void HttpServer::compute_one() {
  std::vector<Connection*> waiting;
  for (Connection& connection : connections_) {
    if (connection.state() == Connection::State::kWaiting) waiting.push_back(&connection);
  }
  std::ranges::stable_sort(waiting, {}, &Connection::deadline);
  for (; waiting.size() > kMaxWaiting; waiting.pop_back()) waiting.back()->turn_away();
  if (!waiting.empty()) waiting.front()->take_turn(service_);
}

// Accepts one connection at a time, so that existing connections proceed in between.
void HttpServer::accept_one() {
  make_place();
  platform::FileDescriptor socket(
      ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.get() >= 0) {
    connections_.emplace_back(std::move(socket), times_);
    // The request has usually arrived already.
    connections_.back().proceed(service_);
  } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    if (connections_.empty()) throw IoError("cannot accept a connection: too many files are open");
    connections_.erase(connections_.begin());
  }
}

void HttpServer::make_place() {
  remove_done();
  if (connections_.size() < kMaxConnections) return;
  connections_.erase(std::min_element(
      connections_.begin(), connections_.end(),
      [](const Connection& a, const Connection& b) { return a.state() < b.state(); }));
}

void HttpServer::remove_done() {
  const bool stops = listener_.get() < 0;
  std::erase_if(connections_, [stops](const Connection& connection) {
    return connection.state() == Connection::State::kDone ||
           (stops && connection.state() != Connection::State::kWriting);
  });
}

}  // namespace heed::cli
