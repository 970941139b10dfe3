#include "serve/server.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "heed/core/error.h"
#include "heed/viz/explorer.h"
#include "serve/requests.h"

namespace heed::cli {

namespace {

// A pipe into which the first SIGINT or SIGTERM writes; a second one ends the program. Blocking the
// signals and waiting for them would not work, because libraries start threads before main().
int signal_pipe[2] = {-1, -1};

extern "C" void write_to_pipe(int /*signal*/) {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(signal_pipe[1], &byte, 1);
}

void catch_signals() {
  if (::pipe2(signal_pipe, O_CLOEXEC) != 0) throw IoError("no pipe can be made for signals");
  struct sigaction action {};
  action.sa_handler = write_to_pipe;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

ExplorerServer::ExplorerServer(int port)
    : server_(port, {.answer =
                         [this, page = std::make_shared<const std::string>(explorer_page(
                                    {{explorer_example()}, true}))](const HttpRequest& request) {
                           return answer_request(request, server_.port(), page);
                         },
                     .is_expensive =
                         [this](const HttpRequest& request) {
                           return is_computed(request, server_.port());
                         }}) {}

void ExplorerServer::run(const std::function<void()>& announce) {
  catch_signals();
  announce();
  server_.run(signal_pipe[0]);
}

}  // namespace heed::cli
