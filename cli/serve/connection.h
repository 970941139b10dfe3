// One connection of a client: a request comes in, an answer goes out, never waiting for either.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "io/posix_file.h"
#include "serve/http.h"

namespace heed::cli {

// What answers requests. An answer that takes long to compute is expensive: its connection waits
// until it is its turn, and everybody else is answered first.
struct HttpService {
  std::function<HttpAnswer(const HttpRequest&)> answer;
  std::function<bool(const HttpRequest&)> is_expensive = [](const HttpRequest&) { return false; };
};

// How long a client may take, whatever it does meanwhile.
struct ConnectionTimes {
  std::chrono::milliseconds request{10'000};  // until its request is whole
  std::chrono::milliseconds turn{20'000};     // from then until an expensive answer is computed
  std::chrono::milliseconds answer{20'000};   // from then until it has taken the answer
  std::chrono::milliseconds closing{2'000};   // from then until it closes, too
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  // The order in which connections make place for new ones.
  enum class State { kDone, kClosing, kReading, kWaiting, kWriting };

  // Takes a socket that does not block.
  Connection(io::FileDescriptor socket, const ConnectionTimes& times);

  State state() const { return state_; }
  Clock::time_point deadline() const { return deadline_; }
  int socket() const { return socket_.get(); }
  short events() const;  // what poll() is to wait for

  // Goes on as far as the socket lets it. `service` answers the request once it is whole, unless
  // that is expensive: then the connection waits.
  void proceed(const HttpService& service);
  // Answers a request that waits.
  void take_turn(const HttpService& service);
  // Answers a request that waits with 503: there are too many.
  void turn_away();
  // The poll() of a connection that waits found something: its client has gone.
  void hang_up() { state_ = State::kDone; }
  // The deadline has passed: a request that is not whole is answered with 408, one that waits with
  // 503, all else ends.
  void expire();

 private:
  void enter(State state, std::chrono::milliseconds time);
  void read(const HttpService& service);
  void answer(HttpAnswer answer);
  void write();
  void drain();

  io::FileDescriptor socket_;
  ConnectionTimes times_;
  State state_ = State::kReading;
  Clock::time_point deadline_;
  RequestReader reader_;
  std::string head_;
  HttpAnswer answer_;
  std::size_t sent_ = 0;  // of head and body
};

}  // namespace heed::cli
