// Runs the command heed as a user would.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace heed::testing_support {

struct CommandResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

namespace detail {

inline std::string quoted(const std::string& argument) {
  std::string result = "'";
  for (const char c : argument) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// Reads standard output to its end and returns the exit code, -1 after a signal.
inline int run_line(const std::string& line, std::string& out) {
  std::FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return -1;
  std::array<char, 4096> buffer;
  std::size_t count = 0;
  while ((count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    out.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace detail

// The exit code and everything written. Arguments reach the command as they are.
inline CommandResult run_command(const std::vector<std::string>& arguments) {
  std::string errors = testing::TempDir() + "heed-stderr-XXXXXX";
  const int descriptor = mkstemp(errors.data());
  if (descriptor < 0) return {};
  close(descriptor);
  std::string line = detail::quoted(HEED_COMMAND);
  for (const std::string& argument : arguments) line += ' ' + detail::quoted(argument);
  CommandResult result;
  result.exit_code = detail::run_line(line + " 2>" + detail::quoted(errors), result.out);
  std::stringstream text;
  text << std::ifstream(errors).rdbuf();
  result.err = text.str();
  std::filesystem::remove(errors);
  return result;
}

}  // namespace heed::testing_support
