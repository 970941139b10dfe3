#include "translation/writing_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

namespace heed::cli {

void WritingProgress::report(std::size_t done) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::seconds(2)) return;
  last_ = now;
  has_line_ = ::isatty(STDERR_FILENO) != 0;
  const auto text = fmt::format("{} of {} {}", done, total_, unit_);
  std::cerr << (has_line_ ? "\r" : "") << text << (has_line_ ? "\x1b[K" : "\n") << std::flush;
}

WritingProgress::~WritingProgress() {
  if (has_line_) std::cerr << "\r\x1b[K" << std::flush;
}

}  // namespace heed::cli
