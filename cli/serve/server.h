// Serves the explorer over HTTP.
#pragma once

#include <functional>
#include <string>

#include "serve/http_server.h"

namespace heed::cli {

class ExplorerServer {
 public:
  // Listens at a port of this machine; 0 means any free one. Throws IoError when it is unavailable.
  explicit ExplorerServer(int port);
  ExplorerServer(const ExplorerServer&) = delete;
  ExplorerServer& operator=(const ExplorerServer&) = delete;

  std::string url() const { return url_of(server_.port()); }

  // Calls announce(), then serves until SIGINT or SIGTERM and finishes the answers that have begun;
  // a second signal ends the program. Call it once per program.
  void run(const std::function<void()>& announce);

 private:
  HttpServer server_;
};

}  // namespace heed::cli
