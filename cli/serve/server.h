// The explorer over HTTP.
#pragma once

#include <functional>
#include <string>

#include "serve/http_server.h"

namespace heed::cli {

class ExplorerServer {
 public:
  // Binds to the address; port 0 is any that is free. Throws IoError when it cannot be had.
  explicit ExplorerServer(Address address);
  ExplorerServer(const ExplorerServer&) = delete;
  ExplorerServer& operator=(const ExplorerServer&) = delete;

  std::string url() const { return url_of(address_); }

  // Calls announce(), then serves until SIGINT or SIGTERM comes. Answers that have begun are
  // finished; a second signal ends the program. Once per program.
  void run(const std::function<void()>& announce);

 private:
  Address address_;
  HttpServer server_;
};

}  // namespace heed::cli
