// An HTTP/1.1 server for a few users: one request per connection, one answer at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/platform_files.h"
#include "serve/connection.h"

namespace heed::cli {

// Returns "http://127.0.0.1:PORT/".
std::string url_of(int port);

// One thread waits for all connections and answers each request when it is complete, so that a slow
// client delays no other. Expensive requests are answered one at a time, the oldest first, after
// all other requests that have arrived; more than kMaxWaiting are turned away. Memory is bounded by
// kMaxConnections times what RequestReader keeps plus one answer. A client beyond the limit
// replaces the connection that has been closing longest, else the one sending its request longest,
// else the one receiving its answer longest.
class HttpServer {
 public:
  static constexpr std::size_t kMaxConnections = 64;
  static constexpr std::size_t kMaxWaiting = 16;

  // Listens at 127.0.0.1, which no other machine reaches; port 0 means any free port. Throws
  // IoError when the port is unavailable.
  HttpServer(int port, HttpService service, const ConnectionTimes& times = {});

  int port() const { return port_; }

  // Serves until `stop` is readable, then finishes the answers that have begun.
  void run(int stop);

 private:
  void accept_one();
  void make_place();
  bool wait(int stop);  // returns true if an event arrived
  int milliseconds_to_wait() const;
  void compute_one();
  void remove_done();

  int port_ = 0;
  platform::FileDescriptor listener_;  // −1 once the server should stop
  HttpService service_;
  ConnectionTimes times_;
  std::vector<Connection> connections_;  // in the order of arrival
};

}  // namespace heed::cli
