/// An executor of plain threads, for tests.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "heed/core/parallel.h"

namespace heed {

/// Starts a thread for every call, so that all calls run at once.
class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(int num_threads) : num_threads_(num_threads) {}

  int num_threads() const override { return num_threads_; }
  void run(int count, FunctionRef<void()> work) override {
    num_calls_ += count;
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) threads.emplace_back([&] { work(); });
    for (std::thread& thread : threads) thread.join();
  }

  /// Returns the number of calls of work().
  int num_calls() const { return num_calls_; }

 private:
  int num_threads_;
  std::atomic<int> num_calls_ = 0;
};

}  // namespace heed
