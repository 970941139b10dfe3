// Reports on stderr how many items are done, when that takes longer than two seconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace heed::cli {

class WritingProgress {
 public:
  explicit WritingProgress(std::size_t total, std::string unit = "sentences written")
      : total_(total), unit_(std::move(unit)) {}
  ~WritingProgress();
  WritingProgress(const WritingProgress&) = delete;
  WritingProgress& operator=(const WritingProgress&) = delete;

  // May be called often: it prints at most every two seconds.
  void report(std::size_t done);

 private:
  std::size_t total_;
  std::string unit_;
  bool has_line_ = false;  // a line on the terminal that is overwritten
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace heed::cli
