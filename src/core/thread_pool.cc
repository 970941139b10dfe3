#include "core/thread_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/platform.h"
#include "core/waiting.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

// The time for which a waiting thread keeps its processor: longer than the time between the loops
// of a model's forward pass, or of a Python program, and about as long as waking takes.
constexpr const char* kDefaultSpin = "200";
constexpr const char* kSpinVariable = "HEED_SPIN_MICROSECONDS";
constexpr std::int64_t kMaxSpin = 1'000'000;

// nullopt if the text is not a valid time.
std::optional<microseconds> parse_spin_time(std::string_view text) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end() || value < 0 || value > kMaxSpin) {
    return std::nullopt;
  }
  return microseconds(value);
}

std::string spin_text() {
  const char* const text = std::getenv(kSpinVariable);
  return text == nullptr ? kDefaultSpin : text;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns true if is_done() became true within `time`.
template <class IsDone>
bool spin_until(const IsDone& is_done, microseconds time) {
  constexpr int kLooks = 32;  // takes some microseconds
  const auto end = steady_clock::now() + time;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (is_done()) return true;
      pause();
    }
  } while (steady_clock::now() < end);
  return false;
}

// Takes a processor out of a set. Returns false if no other is left.
bool leave_out(int processor, platform::ProcessorSet& processors) {
  const auto word = static_cast<std::size_t>(processor) / 64;
  if (word < processors.size()) processors[word] &= ~(std::uint64_t{1} << (processor % 64));
  return std::any_of(processors.begin(), processors.end(), [](auto bits) { return bits != 0; });
}

}  // namespace

// The threads that work on a loop and on the loops within it.
struct ThreadPool::Team {
  int num_missing;  // helpers that may still join
  // The largest number of helpers.
  const std::size_t num_helpers = static_cast<std::size_t>(num_missing);
};

// A call of run() that has not returned.
struct ThreadPool::Job {
  FunctionRef<void()> work;
  Team& team;
  int num_open;                      // the number of calls of `work` that have not begun
  std::atomic<int> num_helpers = 0;  // the number of helpers at work
};

struct ThreadPool::Helper {
  platform::ThreadHandle thread = {};
  bool is_asleep = false;
  bool is_moved = false;  // moved away from the processor of the thread that woke it
  platform::ProcessorSet processors = {};  // on which it may run otherwise
};

thread_local ThreadPool::Team* ThreadPool::current_team = nullptr;

class ThreadPool::TeamScope {
 public:
  explicit TeamScope(Team& team) : outer_(std::exchange(current_team, &team)) {}
  ~TeamScope() { current_team = outer_; }
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  Team* outer_;
};

ThreadPool::ThreadPool()
    : num_processors_(platform::num_processors()),
      spin_text_(spin_text()),
      spin_time_(parse_spin_time(spin_text_)) {}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run(int count, FunctionRef<void()> work) {
  if (!spin_time_) {
    throw InvalidArgument(fmt::format("{} is '{}', expected microseconds from 0 to {}",
                                      kSpinVariable, spin_text_, kMaxSpin));
  }
  Team own{heed::num_threads() - 1};
  Team& team = current_team == nullptr ? own : *current_team;
  Job job{work, team, count - 1};
  post(job);
  {
    const TeamScope scope(team);
    work();
  }
  withdraw(job);
  await_helpers(job);
}

void ThreadPool::post(Job& job) {
  int num_wanted = 0;
  {
    const std::lock_guard lock(mutex_);
    num_wanted = std::max(std::min(job.num_open, job.team.num_missing), 0);
    jobs_.push_back(&job);
    std::size_t num_useful = num_busy_;
    for (const Job* const posted : jobs_) num_useful += static_cast<std::size_t>(posted->num_open);
    start_helpers(std::min(num_useful, job.team.num_helpers));
  }
  num_posted_.fetch_add(1);
  wake(num_wanted);
}

void ThreadPool::withdraw(Job& job) {
  const std::lock_guard lock(mutex_);
  std::erase(jobs_, &job);
}

void ThreadPool::await_helpers(const Job& job) {
  const auto is_done = [&] { return job.num_helpers.load(std::memory_order_acquire) == 0; };
  if (spin_until(is_done, *spin_time_)) return;
  num_awaiting_.fetch_add(1);
  for (;;) {
    const std::uint32_t seen = num_finished_.load();
    if (is_done()) break;
    platform::wait_while(num_finished_, seen);
  }
  num_awaiting_.fetch_sub(1);
}

// Requires the mutex. Starts fewer helpers if the system has no more threads.
void ThreadPool::start_helpers(std::size_t count) {
  if (helpers_.size() >= count) return;
  platform::with_signals_blocked([&] {
    try {
      while (helpers_.size() < count) {
        const auto helper = std::make_shared<Helper>();
        std::thread thread([this, helper] { help(*helper); });
        helper->thread = thread.native_handle();
        thread.detach();
        helpers_.push_back(helper);
      }
    } catch (const std::system_error&) {
      return;
    }
  });
}

void ThreadPool::wake(int count) {
  if (count == 0 || num_asleep_.load() == 0) return;
  move_sleepers_away();
  for (int i = 0; i < count; ++i) platform::wake_one(num_posted_);
}

// The system tends to wake a thread on the processor of the thread that wakes it, where it must
// wait. With many processors it finds another one, and changing the affinity of each helper would
// take long.
void ThreadPool::move_sleepers_away() {
  constexpr int kFewProcessors = 8;
  const int here = platform::current_processor();
  if (num_processors_ > kFewProcessors || here < 0) return;
  const std::lock_guard lock(mutex_);
  for (const auto& helper : helpers_) {
    if (!helper->is_asleep) continue;
    platform::ProcessorSet& usual = helper->processors;
    if (!helper->is_moved && !platform::get_processors(helper->thread, usual)) continue;
    platform::ProcessorSet others = usual;
    if (!leave_out(here, others)) continue;
    helper->is_moved = platform::set_processors(helper->thread, others);
  }
}

void ThreadPool::help(Helper& self) {
  for (;;) {
    const std::uint32_t seen = num_posted_.load();
    if (Job* const job = take_job(); job != nullptr) {
      {
        const TeamScope scope(job->team);
        job->work();
      }
      finish(*job);
    } else {
      wait_for_jobs(seen, self);
    }
  }
}

ThreadPool::Job* ThreadPool::take_job() {
  const std::lock_guard lock(mutex_);
  for (Job* const job : jobs_) {
    if (job->num_open == 0 || job->team.num_missing == 0) continue;
    --job->num_open;
    --job->team.num_missing;
    ++num_busy_;
    job->num_helpers.fetch_add(1);
    return job;
  }
  return nullptr;
}

void ThreadPool::finish(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    ++job.team.num_missing;
    --num_busy_;
  }
  // The job may be destroyed after this.
  job.num_helpers.fetch_sub(1);
  num_finished_.fetch_add(1);
  if (num_awaiting_.load() > 0) platform::wake_all(num_finished_);
}

void ThreadPool::wait_for_jobs(std::uint32_t seen, Helper& self) {
  const auto is_posted = [&] { return num_posted_.load(std::memory_order_relaxed) != seen; };
  if (spin_until(is_posted, *spin_time_)) return;
  set_asleep(self, true);
  platform::wait_while(num_posted_, seen);
  if (set_asleep(self, false)) platform::set_processors(self.thread, self.processors);
}

// Returns true if the helper had been moved.
bool ThreadPool::set_asleep(Helper& self, bool is_asleep) {
  const std::lock_guard lock(mutex_);
  self.is_asleep = is_asleep;
  num_asleep_.fetch_add(is_asleep ? 1 : -1);
  return std::exchange(self.is_moved, false);
}

void ThreadPool::after_fork_in_child() {
  helpers_.clear();
  jobs_.clear();
  num_busy_ = 0;
  num_asleep_ = 0;
  num_awaiting_ = 0;
  current_team = nullptr;
  mutex_.unlock();
}

}}  // namespace heed::v0
