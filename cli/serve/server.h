// The explorer over HTTP.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/requests.h"

namespace heed::cli {

// Serves two things: GET / is the page, POST /api/attention what the page asks for. Nothing is read
// from files. Every other path, another method, a foreign Host or Origin, a long body and more than
// kMaxRequests requests at once get a JSON object with `error`.
class ExplorerServer {
 public:
  static constexpr int kMaxRequests = 4;

  // Binds to the address; port 0 is any that is free. Throws IoError when it cannot be had.
  explicit ExplorerServer(Address address);
  ~ExplorerServer();
  ExplorerServer(const ExplorerServer&) = delete;
  ExplorerServer& operator=(const ExplorerServer&) = delete;

  // With the port that was found.
  const Address& address() const { return address_; }
  std::string url() const;

  // Calls announce(), then serves until SIGINT or SIGTERM comes. Requests that have begun are
  // finished; a second signal ends the program. Once per program.
  void run(const std::function<void()>& announce);

 private:
  class Implementation;

  Address address_;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace heed::cli
