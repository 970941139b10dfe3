// A program with verbs: how its command line is read, what it prints of errors, and how it ends.
#pragma once

#include <CLI/App.hpp>
#include <functional>

namespace heed::cli {

// Opens /dev/null in place of closed standard streams: otherwise the next file that is opened would
// take the descriptor and receive the printed text. Each is opened in the opposite direction, so
// that using it still fails.
void occupy_standard_streams();

// Adds --version, the format of the help, and the check of the process before a verb runs.
void prepare(CLI::App& command);

// Parses the command line and runs its verb. Returns the exit code; throws what the verb throws.
int run_verbs(CLI::App& command, int argc, char** argv);

// Calls `body`, which returns an exit code, and prints what it throws: 1 stands for a problem with
// a file, a sentence or a machine that the command line names, 2 for the command line itself.
int report_errors(const CLI::App& command, const std::function<int()>& body);

}  // namespace heed::cli
