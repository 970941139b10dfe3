// Runs the command heed as a user would.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "support/places.h"

namespace heed::testing_support {

struct CommandResult {
  int exit_code = -1;  // 128 + the signal if one ended it
  std::string out;
  std::string err;
};

using Environment = std::map<std::string, std::string>;

// A folder for one test, removed afterwards with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "heed-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

  std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

namespace detail {

// Executes the command. Colour, width and characters are determined by `environment` only.
[[noreturn]] inline void become_command(const std::vector<std::string>& arguments,
                                        const Environment& environment) {
  for (const char* name :
       {"NO_COLOR", "TERM", "COLORTERM", "COLUMNS", "LC_ALL", "LC_CTYPE", "LANG"}) {
    ::unsetenv(name);
  }
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::string program = heed_command();
  std::vector<std::string> copies = arguments;
  std::vector<char*> pointers{program.data()};
  for (std::string& argument : copies) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  ::_exit(127);
}

inline int exit_code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline void redirect(int fd, const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  if (file < 0 || ::dup2(file, fd) < 0) ::_exit(126);
  ::close(file);
}

inline void read_from(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  if (file < 0 || ::dup2(file, STDIN_FILENO) < 0) ::_exit(126);
  ::close(file);
}

}  // namespace detail

// Runs the command with its output in files. `out` may name another output file, for example
// /dev/full, and `in` the file of standard input.
inline CommandResult run_command(const std::vector<std::string>& arguments,
                                 const Environment& environment = {}, std::string out = "",
                                 const std::string& in = "/dev/null") {
  const TemporaryFolder folder;
  if (out.empty()) out = folder / "out";
  const std::string err = folder / "err";
  const pid_t child = ::fork();
  if (child == 0) {
    detail::read_from(in);
    detail::redirect(STDOUT_FILENO, out);
    detail::redirect(STDERR_FILENO, err);
    detail::become_command(arguments, environment);
  }
  const int exit_code = detail::exit_code_of(child);
  return {exit_code, std::filesystem::is_regular_file(out) ? read_text(out) : "", read_text(err)};
}

// Runs the command in a terminal of `columns` columns: `out` is its whole output, including errors.
inline CommandResult run_in_terminal(const std::vector<std::string>& arguments,
                                     const Environment& environment, unsigned short columns = 80) {
  winsize size{};
  size.ws_row = 50;
  size.ws_col = columns;
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) detail::become_command(arguments, environment);
  CommandResult result;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = ::read(terminal, buffer, sizeof buffer)) > 0 || (count < 0 && errno == EINTR)) {
    if (count > 0) result.out.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(terminal);
  result.exit_code = detail::exit_code_of(child);
  return result;
}

}  // namespace heed::testing_support
