#include "program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "heed/core/config.h"
#include "heed/viz/terminal.h"
#include "output_files.h"
#include "process.h"
#include "train/interrupt.h"
#include "usage.h"
#include "verbs.h"

namespace heed::cli {

namespace {

// The exit codes.
constexpr int kSuccess = 0;
constexpr int kDataError = 1;
constexpr int kUsageError = 2;

// Returns "heed VERB" or "heed bench VERB" for messages, once the verb is known.
std::string name_of(const CLI::App& command) {
  const auto verbs = command.get_subcommands();
  return verbs.empty() ? command.get_name() : command.get_name() + ' ' + name_of(*verbs.front());
}

// A message may have several lines and quote the command line or a file, so it is sanitized for a
// terminal.
void print_error(const CLI::App& command, std::string_view message) {
  std::cerr << name_of(command) << ": ";
  while (!message.empty()) {
    const std::size_t end = std::min(message.find('\n'), message.size());
    std::cerr << sanitize_for_terminal(message.substr(0, end)) << '\n';
    message.remove_prefix(std::min(end + 1, message.size()));
  }
}

int report_usage(const CLI::App& command, std::string_view message) {
  print_error(command, message);
  std::cerr << fmt::format("`{} --help` explains the command line.\n", name_of(command));
  return kUsageError;
}

// Checks the first word and, if it is a verb with verbs of its own, the words after it.
void check_verbs(const CLI::App& command, int argc, char** argv) {
  const CLI::App* app = &command;
  for (int i = 1; i < argc && !app->get_subcommands({}).empty(); ++i) {
    const std::string verb = argv[i];
    std::vector<std::string> names;
    for (const CLI::App* known : app->get_subcommands({})) names.push_back(known->get_name());
    if (verb.rfind('-', 0) == 0) return;
    if (std::find(names.begin(), names.end(), verb) == names.end()) {
      throw UsageError(unknown_verb(verb, app == &command ? nullptr : app, names));
    }
    app = app->get_subcommand(verb);
  }
}

// Lists the files that remain although the command failed: "; written were 'a.npy', 'b.npy'".
std::string list_of_written() {
  std::string list;
  for (const auto& path : written_paths()) {
    list += fmt::format("{}'{}'", list.empty() ? "; written were " : ", ", path.string());
  }
  return list;
}

}  // namespace

void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

void prepare(CLI::App& command) {
  command.set_version_flag("--version", std::string("heed ") + heed::version(),
                           "Print the version and exit");
  command.require_subcommand(0, 1);
  command.formatter(std::make_shared<HelpFormatter>());
  // Called after the command line is parsed and before the verb runs.
  command.parse_complete_callback([&command] {
    if (!command.get_subcommands().empty()) check_process();
  });
}

int run_verbs(CLI::App& command, int argc, char** argv) {
  try {
    check_verbs(command, argc, argv);
    check_flags(command, argc, argv);
    command.parse(argc, argv);
  } catch (const CLI::Success& request) {
    command.exit(request);  // --help or --version
  } catch (const CLI::ParseError& error) {
    return report_usage(command, describe_usage(command, error));
  }
  if (argc == 1) {
    std::cerr << command.help();
    return kUsageError;
  }
  std::cout.flush();
  if (!std::cout) {
    print_error(command, "standard output cannot be written" + list_of_written());
    return kDataError;
  }
  return kSuccess;
}

int report_errors(const CLI::App& command, const std::function<int()>& body) {
  try {
    return body();
  } catch (const UsageError& error) {
    return report_usage(command, error.what());
  } catch (const Interrupted& interrupted) {
    print_error(command, interrupted.what());
    return interrupted.exit_code();
  } catch (const std::bad_alloc& error) {
    const std::string_view what = error.what();
    print_error(command, what == std::bad_alloc().what() ? "not enough memory" : what);
  } catch (const std::exception& error) {
    print_error(command, error.what());
  }
  return kDataError;
}

}  // namespace heed::cli
