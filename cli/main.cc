// heed: attention on the command line.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <exception>
#include <iostream>

#include "heed/config.h"
#include "verbs.h"

namespace {

// The exit codes: what a script can tell apart.
constexpr int kDataError = 1;   // a file, an argument's contents or the machine
constexpr int kUsageError = 2;  // the command line itself

int run(int argc, char** argv) {
  CLI::App command("heed: attention for C++. Compute it, look into it, learn it.", "heed");
  command.set_version_flag("--version", std::string("heed ") + heed::version());
  command.require_subcommand(1);
  command.get_formatter()->column_width(30);
  command.footer("Start with `heed demo`. `heed VERB --help` explains a verb.");
  heed::cli::add_info(command);
  heed::cli::add_lesson(command);
  try {
    command.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return command.exit(error) == 0 ? 0 : kUsageError;
  }
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "heed: standard output cannot be written\n";
    return kDataError;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "heed: " << error.what() << '\n';
    return kDataError;
  }
}
