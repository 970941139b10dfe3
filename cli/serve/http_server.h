// A server of HTTP/1.1 for a handful of people: one request a connection, one request at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/posix_file.h"
#include "serve/connection.h"

namespace heed::cli {

// Where a server listens.
struct Address {
  std::string host;
  int port = 0;
};

// "http://HOST:PORT/".
std::string url_of(const Address& address);

// One thread waits for all connections and answers each request when it is whole, so that a slow
// client holds up nobody. Expensive requests are answered one at a time, the oldest first, and
// before each everything else that has come; more than kMaxWaiting are turned away. What it holds
// is bounded: by kMaxConnections, and for each by what RequestReader keeps and one answer. A client
// beyond them takes the place of the one that has been closing, or else sending its request, or
// else taking its answer, for longest.
class HttpServer {
 public:
  static constexpr std::size_t kMaxConnections = 64;
  static constexpr std::size_t kMaxWaiting = 16;

  // Listens at the address; port 0 is any that is free. Throws IoError when it cannot be had.
  HttpServer(const Address& address, HttpService service, const ConnectionTimes& times = {});

  int port() const;

  // Serves until something can be read from `stop`; answers that have begun are finished then.
  void run(int stop);

 private:
  void accept_one();
  void make_place();
  bool wait(int stop);  // returns whether anything came
  int milliseconds_to_wait() const;
  void compute_one();
  void remove_done();

  io::FileDescriptor listener_;  // −1 once the server is to stop
  HttpService service_;
  ConnectionTimes times_;
  std::vector<Connection> connections_;  // in the order in which they came
};

}  // namespace heed::cli
