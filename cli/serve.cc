// heed serve: the explorer in a browser, which computes sentences as they are typed.
#include <iostream>
#include <memory>

#include "arguments.h"
#include "serve/server.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr int kDefaultPort = 8642;

void serve(int port) {
  ExplorerServer server(port);
  server.run([&] {
    std::cout << "The explorer is at " << server.url() << '\n' << "Ctrl-C ends it." << std::endl;
  });
}

}  // namespace

void add_serve(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "serve", "Show the explorer in a browser and compute the sentences typed there");
  auto port = std::make_shared<int>(kDefaultPort);
  add_option(*verb, "--port", *port, "The port: 1 to 65535, or 0 for any that is free")
      ->check(CLI::Range(0, 65535).description(""))
      ->capture_default_str();
  verb->footer(
      "Only programs on this machine reach it, at 127.0.0.1.\n\n"
      "Example:\n"
      "  heed serve --port 9000");
  verb->callback([port] { serve(*port); });
}

}  // namespace heed::cli
