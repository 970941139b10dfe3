// The threads of parallel_for() if no executor is set.
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

// Helpers that wait for loops. A helper without work polls for the next loop for a while before it
// sleeps, as waking takes longer than many loops. Helpers are started when they are first needed
// and stay until the process ends.
class ThreadPool final : public Executor {
 public:
  ThreadPool();
  ~ThreadPool() override;  // only of a pool that has never run anything

  // The number of processors that this process may use.
  int num_threads() const override { return num_processors_; }

  // Throws InvalidArgument if HEED_SPIN_MICROSECONDS is not a number of microseconds.
  void run(int count, FunctionRef<void()> work) override;

  // To be called around a fork. The new process has no helpers.
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

  static thread_local Team* current_team;  // nullptr if this thread is in no loop

  const int num_processors_;
  const std::string spin_text_;  // the value of the environment variable
  const std::optional<std::chrono::microseconds> spin_time_;
  std::mutex mutex_;  // guards the next three members, and the counts of helpers, jobs and teams
  std::vector<std::shared_ptr<Helper>> helpers_;
  std::size_t num_busy_ = 0;                   // the number of helpers at work
  std::vector<Job*> jobs_;                     // jobs that helpers may join, the oldest first
  std::atomic<std::uint32_t> num_posted_ = 0;  // the number of jobs so far
  // The number of times that a helper has finished a job.
  std::atomic<std::uint32_t> num_finished_ = 0;
  std::atomic<int> num_asleep_ = 0;
  // The number of callers that sleep until a helper has finished.
  std::atomic<int> num_awaiting_ = 0;
};

}}  // namespace heed::v0
