#include "serve/http_server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
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

// Returns −1 where the address is unavailable. Accepted sockets inherit the buffer sizes.
io::FileDescriptor listen_at(const addrinfo& address) {
  io::FileDescriptor socket(
      ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  if (socket.get() < 0) return socket;
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  set_option(socket.get(), SOL_SOCKET, SO_RCVBUF, kSocketBytes);
  set_option(socket.get(), SOL_SOCKET, SO_SNDBUF, kSocketBytes);
  if (address.ai_family == AF_INET6) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return io::FileDescriptor(-1);
  }
  return socket;
}

io::FileDescriptor listen_at(const Address& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  if (address.host.empty() ||
      ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found) != 0) {
    return io::FileDescriptor(-1);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    io::FileDescriptor socket = listen_at(*each);
    if (socket.get() >= 0) return socket;
  }
  return io::FileDescriptor(-1);
}

}  // namespace

std::string url_of(const Address& address) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  return fmt::format("http://{}:{}/", is_ipv6 ? '[' + address.host + ']' : address.host,
                     address.port);
}

HttpServer::HttpServer(const Address& address, HttpService service, const ConnectionTimes& times)
    : listener_(listen_at(address)), service_(std::move(service)), times_(times) {
  if (listener_.get() < 0) {
    throw IoError(fmt::format(
        "cannot listen at {}: the address is not one of this machine, or the port is in "
        "use or not permitted",
        url_of(address)));
  }
}

int HttpServer::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
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
    listener_ = io::FileDescriptor(-1);
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
  io::FileDescriptor socket(
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
