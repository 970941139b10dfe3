// Says on stderr what is being measured, where that takes longer than two seconds.
#pragma once

#include <chrono>
#include <string_view>

namespace heed::cli {

class Progress {
 public:
  // `total` is how many cases there are.
  explicit Progress(int total) : total_(total) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void start_case() { ++current_; }
  // To be called often: it prints at most every two seconds.
  void report(int repetition, int repetitions);

 private:
  int total_;
  int current_ = 0;
  bool has_line_ = false;  // a line on the terminal that is rewritten in place
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace heed::cli
