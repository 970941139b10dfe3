#include "bench/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

namespace heed::cli {

void Progress::report(int repetition, int repetitions) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::seconds(2)) return;
  last_ = now;
  const std::string text = fmt::format("measuring: case {} of {}, repetition {} of {}", current_,
                                       total_, repetition, repetitions);
  has_line_ = ::isatty(STDERR_FILENO) != 0;
  if (has_line_) {
    std::cerr << '\r' << text << "\x1b[K" << std::flush;
  } else {
    std::cerr << text << '\n';
  }
}

Progress::~Progress() {
  if (has_line_) std::cerr << "\r\x1b[K" << std::flush;
}

}  // namespace heed::cli
