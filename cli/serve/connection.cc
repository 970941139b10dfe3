#include "serve/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <memory>
#include <utility>

namespace heed::cli {

namespace {

constexpr std::size_t kReadBytes = 16 * 1024;

// True if a call that returned −1 would have blocked.
bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

HttpAnswer guarded(const HttpService& service, const HttpRequest& request) {
  try {
    return service.answer(request);
  } catch (const std::exception&) {
    return error_answer(kInternalError, "this request could not be answered");
  }
}

}  // namespace

Connection::Connection(platform::FileDescriptor socket, const ConnectionTimes& times)
    : socket_(std::move(socket)), times_(times) {
  enter(State::kReading, times_.request);
}

void Connection::enter(State state, std::chrono::milliseconds time) {
  state_ = state;
  deadline_ = Clock::now() + time;
}

// A waiting connection polls for no events; poll() always reports its end.
short Connection::events() const {
  if (state_ == State::kWaiting) return 0;
  return state_ == State::kWriting ? POLLOUT : POLLIN;
}

void Connection::proceed(const HttpService& service) {
  if (state_ == State::kReading) read(service);
  if (state_ == State::kWriting) write();
  if (state_ == State::kClosing) drain();
}

void Connection::take_turn(const HttpService& service) {
  answer(guarded(service, reader_.request()));
  write();
}

void Connection::turn_away() {
  answer(error_answer(kServiceUnavailable,
                      "too many requests are being computed: try again in a few seconds"));
  write();
}

void Connection::expire() {
  if (state_ == State::kWaiting) return turn_away();
  if (state_ != State::kReading) {
    state_ = State::kDone;
    return;
  }
  answer(error_answer(kRequestTimeout, "the request took too long"));
  write();
}

void Connection::read(const HttpService& service) {
  std::array<char, kReadBytes> buffer;
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (count == 0 || (count < 0 && !would_wait())) state_ = State::kDone;
  if (count <= 0 || !reader_.take({buffer.data(), static_cast<std::size_t>(count)})) return;
  if (reader_.refusal()) return answer(*reader_.refusal());
  if (service.is_expensive(reader_.request())) return enter(State::kWaiting, times_.turn);
  answer(guarded(service, reader_.request()));
}

void Connection::answer(HttpAnswer answer) {
  answer_ = std::move(answer);
  head_ = head_of(answer_);
  // An answer to HEAD has headers only.
  if (reader_.request().method == "HEAD") answer_.body = std::make_shared<const std::string>();
  reader_ = RequestReader();
  enter(State::kWriting, times_.answer);
}

void Connection::write() {
  const std::string& body = *answer_.body;
  while (sent_ < head_.size() + body.size()) {
    const std::string_view rest = sent_ < head_.size()
                                      ? std::string_view(head_).substr(sent_)
                                      : std::string_view(body).substr(sent_ - head_.size());
    const ssize_t count = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0) {
      if (!would_wait()) state_ = State::kDone;
      return;
    }
    sent_ += static_cast<std::size_t>(count);
  }
  answer_ = {};
  // Closing a socket with unread bytes would reset the connection and lose the answer. So they are
  // read and discarded until the client has closed its side.
  ::shutdown(socket_.get(), SHUT_WR);
  enter(State::kClosing, times_.closing);
}

void Connection::drain() {
  std::array<char, kReadBytes> buffer;
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (count == 0 || (count < 0 && !would_wait())) state_ = State::kDone;
}

}  // namespace heed::cli
