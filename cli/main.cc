// heed: attention on the command line.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <algorithm>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "blas_kernels.h"
#include "heed/core/config.h"
#include "heed/viz/terminal.h"
#include "help_formatter.h"
#include "output_files.h"
#include "process.h"
#include "ranks.h"
#include "train/interrupt.h"
#include "usage.h"
#include "verbs.h"

// Tells OpenBLAS to start one thread; it calls this function before main(). heed divides products
// among its own threads. Where memory is scarce, a thread that OpenBLAS starts would ask for memory
// again and again, and a command that multiplies nothing would never end. Weak, because an OpenBLAS
// that is linked statically defines the function itself.
extern "C" [[gnu::weak, gnu::visibility("default")]] int openblas_num_threads_env() { return 1; }

namespace {

// The exit codes.
constexpr int kSuccess = 0;
constexpr int kDataError = 1;   // a file, a sentence or a machine that the command line names
constexpr int kUsageError = 2;  // the command line itself

constexpr const char* kPurpose =
    "heed computes attention, the operation at the heart of transformers, and shows it.";

constexpr const char* kExamples =
    "Examples:\n"
    "  heed demo                                watch attention work on one sentence\n"
    "  heed explain \"Time flies like an arrow\"  the same with your words\n"
    "  heed serve                               play with it in a browser\n"
    "  heed run --query q.npy --key k.npy --value v.npy --out o.npy --mask causal\n"
    "                                           compute it on your own arrays\n"
    "  heed lesson softmax                      learn it, step by step\n"
    "  heed train lm --save story               train a model of text, and let it write:\n"
    "  heed generate --model story\n"
    "  heed diagnose --model story              see what its heads have learned\n"
    "  heed train translate --save fr           train a model that translates numbers:\n"
    "  heed translate --model fr \"forty-two\"\n"
    "\n"
    "`heed VERB --help` explains a verb. Exit codes: 0 success, 1 a problem with a file\n"
    "or another input, 2 a mistake on the command line, 130 Ctrl-C during training.";

void add_verbs(CLI::App& command) {
  command.set_version_flag("--version", std::string("heed ") + heed::version(),
                           "Print the version and exit");
  command.require_subcommand(0, 1);
  command.formatter(std::make_shared<heed::cli::HelpFormatter>());
  heed::cli::add_demo(command);
  heed::cli::add_explain(command);
  heed::cli::add_mask(command);
  heed::cli::add_serve(command);
  heed::cli::add_run(command);
  heed::cli::add_lesson(command);
  heed::cli::add_gallery(command);
  heed::cli::add_train(command);
  heed::cli::add_generate(command);
  heed::cli::add_embed(command);
  heed::cli::add_diagnose(command);
  heed::cli::add_heads(command);
  heed::cli::add_translate(command);
  heed::cli::add_evaluate(command);
  heed::cli::add_compare(command);
  heed::cli::add_bench(command);
  heed::cli::add_info(command);
  for (CLI::App* verb : command.get_subcommands({})) verb->group("Verbs");
  // Called after the command line is parsed and before the verb runs.
  command.parse_complete_callback([&command] {
    if (!command.get_subcommands().empty()) heed::cli::check_process();
  });
  command.footer(kExamples);
}

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
    std::cerr << heed::sanitize_for_terminal(message.substr(0, end)) << '\n';
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
      throw heed::cli::UsageError(
          heed::cli::unknown_verb(verb, app == &command ? nullptr : app, names));
    }
    app = app->get_subcommand(verb);
  }
}

// Lists the files that remain although the command failed: "; written were 'a.npy', 'b.npy'".
std::string list_of_written() {
  std::string list;
  for (const auto& path : heed::cli::written_paths()) {
    list += fmt::format("{}'{}'", list.empty() ? "; written were " : ", ", path.string());
  }
  return list;
}

// Opens /dev/null in place of closed standard streams: otherwise the next file that is opened would
// take the descriptor and receive the printed text. Each is opened in the opposite direction, so
// that using it still fails.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

int run(CLI::App& command, int argc, char** argv) {
  try {
    check_verbs(command, argc, argv);
    heed::cli::check_flags(command, argc, argv);
    command.parse(argc, argv);
  } catch (const CLI::Success& request) {
    command.exit(request);  // --help or --version
  } catch (const CLI::ParseError& error) {
    return report_usage(command, heed::cli::describe_usage(command, error));
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

// Calls `body`, which returns an exit code, and prints what it throws.
int report(const CLI::App& command, const std::function<int()>& body) {
  try {
    return body();
  } catch (const heed::cli::UsageError& error) {
    return report_usage(command, error.what());
  } catch (const heed::cli::Interrupted& interrupted) {
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

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): when not even the error can be printed, so be it
int main(int argc, char** argv) {
  occupy_standard_streams();
  heed::cli::report_large_files();
  heed::cli::choose_blas_kernels();
  CLI::App command(kPurpose, "heed");
  const auto run_command = [&] {
    add_verbs(command);
    return run(command, argc, argv);
  };
  if (!heed::cli::is_divided(argc, argv)) return report(command, run_command);
  return report(command, [&] {
    return heed::cli::run_divided([&](const heed::cli::DivideWork& divide) {
      return report(command, [&] {
        int code = kSuccess;
        divide([&] { code = run_command(); });
        return code;
      });
    });
  });
}
