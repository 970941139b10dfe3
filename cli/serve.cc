// heed serve: the explorer in a browser, which computes sentences as they are typed.
#include <iostream>
#include <memory>
#include <string>

#include "arguments.h"
#include "serve/server.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr int kDefaultPort = 8642;

void serve(const Address& address) {
  ExplorerServer server(address);
  server.run([&] {
    std::cout << "The explorer is at " << server.url() << '\n' << "Ctrl-C ends it." << std::endl;
  });
}

}  // namespace

void add_serve(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "serve", "Show the explorer in a browser and compute the sentences typed there");
  auto address = std::make_shared<Address>(Address{"127.0.0.1", kDefaultPort});
  add_option(*verb, "--port", address->port, "The port: 1 to 65535, or 0 for any that is free")
      ->check(CLI::Range(0, 65535).description(""))
      ->capture_default_str();
  add_option(*verb, "--host", address->host,
             "The address to listen at; any but the default lets other machines in, "
             "without a password and without encryption")
      ->capture_default_str();
  verb->footer(
      "Example:\n"
      "  heed serve --port 9000");
  verb->callback([address] { serve(*address); });
}

}  // namespace heed::cli
