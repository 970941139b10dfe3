// Reports progress on stderr when a measurement takes longer than two seconds.
#pragma once

#include <chrono>
#include <string_view>

namespace heed::cli {

class Progress {
 public:
  // `total` is the number of cases.
  explicit Progress(int total) : total_(total) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void start_case() { ++current_; }
  // May be called often: it prints at most every two seconds.
  void report(int repetition, int repetitions);
  // Returns report() as a function of the repetition.
  auto counting(int repetitions) {
    return [this, repetitions](int repetition) { report(repetition, repetitions); };
  }

 private:
  int total_;
  int current_ = 0;
  bool has_line_ = false;  // a line on the terminal that is overwritten
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace heed::cli
