#include "input_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/text_file.h"
#include "verbs.h"

namespace heed::cli {

bool has_standard_input() {
  struct stat status {};
  if (::fstat(STDIN_FILENO, &status) != 0) return false;
  return S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode);
}

std::string read_input(const std::string& path) {
  return path == kStandardInput ? io::read_standard_input() : io::read_text_file(path);
}

std::string read_words(const std::vector<std::string>& words) {
  if (words.size() != 1 || words.front() != kStandardInput) {
    return fmt::format("{}", fmt::join(words, " "));
  }
  std::string text = io::read_standard_input();
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  if (text.empty()) throw UsageError("standard input is empty, expected a text");
  return text;
}

}  // namespace heed::cli
