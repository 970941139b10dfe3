// Runs the program heed_measure (benchmarks/main.cc).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/command.h"

namespace heed::testing_support {

// Runs heed_measure, which the build puts into a folder beside the command.
inline CommandResult run_measure(std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  std::string program =
      (std::filesystem::path(heed_command()).parent_path() / "benchmarks" / "heed_measure")
          .string();
  const pid_t child = ::fork();
  if (child == 0) {
    detail::read_from("/dev/null");
    detail::redirect(STDOUT_FILENO, folder / "out");
    detail::redirect(STDERR_FILENO, folder / "err");
    std::vector<char*> pointers{program.data()};
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::execv(program.c_str(), pointers.data());
    ::_exit(127);
  }
  const int exit_code = detail::exit_code_of(child);
  return {exit_code, read_text(folder / "out"), read_text(folder / "err")};
}

}  // namespace heed::testing_support
