// The threads of parallel_for where nobody sets an executor.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/parallel.h"

namespace heed { inline namespace v0 {

// Helpers that wait for loops. One that has nothing to do looks out for the next loop for a while
// before it sleeps, as waking takes longer than many a loop. Helpers are started when they are
// first needed, and stay until the process ends.
class ThreadPool final : public Executor {
 public:
  ThreadPool();
  ~ThreadPool() override;  // of a pool that has never run anything

  // Processors that this process may use.
  int num_threads() const override { return num_processors_; }

  // Throws InvalidArgument when HEED_SPIN_MICROSECONDS is no number of microseconds.
  void run(int count, FunctionRef<void()> work) override;

  // Around a fork. The new process has none of the helpers.
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child();

 private:
  struct Team;
  struct Job;
  struct Helper;
  class TeamScope;

  void post(Job& job);
  void withdraw(Job& job);
  void await_helpers(const Job& job);
  void start_helpers(std::size_t count);
  void wake(int count);
  void move_sleepers_away();

  void help(Helper& self);
  Job* take_job();
  void finish(Job& job);
  void wait_for_jobs(std::uint32_t seen, Helper& self);
  bool set_asleep(Helper& self, bool is_asleep);

  static thread_local Team* current_team;  // nullptr: this thread is in no loop

  const int num_processors_;
  const std::string spin_text_;  // as the environment has it
  const std::optional<std::chrono::microseconds> spin_time_;
  std::mutex mutex_;  // of the next three, and of what helpers, jobs and teams count
  std::vector<std::shared_ptr<Helper>> helpers_;
  std::size_t num_busy_ = 0;                     // helpers
  std::vector<Job*> jobs_;                       // that helpers may join, the oldest first
  std::atomic<std::uint32_t> num_posted_ = 0;    // jobs, ever
  std::atomic<std::uint32_t> num_finished_ = 0;  // times that a helper was done with a job, ever
  std::atomic<int> num_asleep_ = 0;
  std::atomic<int> num_awaiting_ = 0;  // callers that sleep until a helper is done
};

}}  // namespace heed::v0
