// One connection of a client, nonblocking: reads a request and writes an answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "core/platform_files.h"
#include "serve/http.h"

namespace heed::cli {

// Answers requests. An answer that takes long to compute is expensive: its connection waits for its
// turn, and other requests are answered first.
struct HttpService {
  std::function<HttpAnswer(const HttpRequest&)> answer;
  std::function<bool(const HttpRequest&)> is_expensive = [](const HttpRequest&) { return false; };
};

// The time limits of a client, regardless of its activity.
struct ConnectionTimes {
  std::chrono::milliseconds request{10'000};  // until its request is complete
  std::chrono::milliseconds turn{20'000};     // after that, until an expensive answer is computed
  std::chrono::milliseconds answer{20'000};   // after that, until it has received the answer
  std::chrono::milliseconds closing{2'000};   // after that, until it closes its side
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  // In the order in which connections are dropped for new ones.
  enum class State { kDone, kClosing, kReading, kWaiting, kWriting };

  // Takes a nonblocking socket.
  Connection(platform::FileDescriptor socket, const ConnectionTimes& times);

  State state() const { return state_; }
  Clock::time_point deadline() const { return deadline_; }
  int socket() const { return socket_.get(); }
  short events() const;  // the events that poll() should wait for

  // Reads and writes as far as the socket allows. `service` answers the request once it is
  // complete, unless that is expensive: then the connection waits.
  void proceed(const HttpService& service);
  // Answers a waiting request.
  void take_turn(const HttpService& service);
  // Answers a waiting request with 503: too many wait.
  void turn_away();
  // Ends a waiting connection for which poll() reported an event: its client has closed.
  void hang_up() { state_ = State::kDone; }
  // Handles a passed deadline: answers an incomplete request with 408 and a waiting one with 503;
  // ends the connection otherwise.
  void expire();

 private:
  void enter(State state, std::chrono::milliseconds time);
  void read(const HttpService& service);
  void answer(HttpAnswer answer);
  void write();
  void drain();

  platform::FileDescriptor socket_;
  ConnectionTimes times_;
  State state_ = State::kReading;
  Clock::time_point deadline_;
  RequestReader reader_;
  std::string head_;
  HttpAnswer answer_;
  std::size_t sent_ = 0;  // of head and body together
};

}  // namespace heed::cli
