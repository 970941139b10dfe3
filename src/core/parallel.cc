#include "heed/core/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "core/float_environment.h"
#include "core/platform.h"
#include "core/thread_pool.h"
#include "heed/core/cancellation.h"

namespace heed { inline namespace v0 {
namespace {

/// The loops around the current thread.
struct LoopContext {
  int limit = 0;  // 0 if there is none
  bool is_inside_loop = false;
};
thread_local LoopContext loop_context;

class ContextScope {
 public:
  explicit ContextScope(LoopContext context) : outer_(std::exchange(loop_context, context)) {}
  ~ContextScope() { loop_context = outer_; }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  LoopContext outer_;
};

/// The settings of the process. They are never destroyed, as helpers wait in the pool until the
/// process ends.
class Settings {
 public:
  static Settings& instance() {
    static Settings& settings = *new Settings;
    return settings;
  }

  int num_threads() const { return num_threads_.load(std::memory_order_relaxed); }

  void set_num_threads(int count) { num_threads_.store(count, std::memory_order_relaxed); }

  /// Locks only if an executor has been set.
  std::shared_ptr<Executor> executor() const {
    if (!has_own_executor_.load(std::memory_order_acquire)) return pool_;
    const std::lock_guard lock(mutex_);
    return executor_;
  }

  Executor& pool() const { return *pool_; }

  void set_executor(std::shared_ptr<Executor> executor) {
    if (executor == nullptr) executor = pool_;
    const std::lock_guard lock(mutex_);
    executor_.swap(executor);
    has_own_executor_.store(executor_ != pool_, std::memory_order_release);
  }

 private:
  /// A fork waits for the holders of locks, as no thread would release these in the new process.
  Settings() {
    platform::at_fork(
        [] {
          instance().mutex_.lock();
          instance().pool_->before_fork();
        },
        [] {
          instance().pool_->after_fork_in_parent();
          instance().mutex_.unlock();
        },
        [] {
          instance().pool_->after_fork_in_child();
          instance().mutex_.unlock();
        });
  }

  mutable std::mutex mutex_;
  const std::shared_ptr<ThreadPool> pool_ = std::make_shared<ThreadPool>();
  std::shared_ptr<Executor> executor_ = pool_;
  std::atomic<bool> has_own_executor_ = false;
  std::atomic<int> num_threads_ = 0;
};

/// Constructed when the program starts: a process that is forked while another thread constructs it
/// would wait for that thread for ever.
[[maybe_unused]] const Settings& settings_at_start = Settings::instance();

/// More than the number of processors of any machine; larger numbers are mistakes.
constexpr int kMaxThreads = 4096;

/// The chunks of one loop. Any number of threads may call work(); each chunk is computed by one of
/// them.
class Loop {
 public:
  using Body = FunctionRef<void(std::int64_t, std::int64_t)>;

  Loop(std::int64_t begin, std::int64_t end, std::int64_t grain, Body body)
      : begin_(begin), end_(end), grain_(grain), body_(body) {
    if (begin != end) num_chunks_ = (end - begin - 1) / grain + 1;
  }

  std::int64_t num_chunks() const { return num_chunks_; }

  void run_chunk(std::int64_t chunk) const {
    check_cancelled();
    const std::int64_t first = begin_ + chunk * grain_;
    body_(first, first + std::min(grain_, end_ - first));
  }

  void work() noexcept {
    num_working_.fetch_add(1);
    run_chunks();
    if (num_working_.fetch_sub(1) == 1 && is_awaited_) {
      const std::lock_guard lock(mutex_);
      all_rest_.notify_one();
    }
  }

  /// Polls for cancellation until the threads at work have finished their last chunks.
  void await_others(Cancellation& cancellation) noexcept {
    is_awaited_ = true;
    // Most finish at once, sooner than this thread could fall asleep.
    constexpr int kYields = 200;
    for (int i = 0; i < kYields && num_working_ != 0; ++i) std::this_thread::yield();
    std::unique_lock lock(mutex_);
    while (!all_rest_.wait_for(lock, kPollInterval, [this] { return num_working_ == 0; })) {
      cancellation.poll();
    }
  }

  /// To be called when every work() has returned.
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static constexpr std::chrono::milliseconds kPollInterval{20};

  void run_chunks() noexcept {
    for (;;) {
      const std::int64_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= num_chunks_ || has_failed_.load(std::memory_order_relaxed)) return;
      try {
        run_chunk(chunk);
      } catch (...) {
        if (!has_failed_.exchange(true)) failure_ = std::current_exception();
      }
    }
  }

  std::int64_t begin_, end_, grain_;
  Body body_;
  std::int64_t num_chunks_ = 0;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<bool> has_failed_ = false;
  std::exception_ptr failure_;

  std::atomic<int> num_working_ = 0;
  std::atomic<bool> is_awaited_ = false;
  std::mutex mutex_;
  std::condition_variable all_rest_;
};

void check_range(std::int64_t begin, std::int64_t end, std::int64_t grain) {
  std::int64_t length = 0;
  if (begin > end || __builtin_sub_overflow(end, begin, &length)) {
    throw InvalidArgument(fmt::format("parallel_for: [{}, {}) is not a range", begin, end));
  }
  if (grain < 1) {
    throw InvalidArgument(fmt::format("parallel_for: grain is {}, at least 1 is expected", grain));
  }
}

}  // namespace

Executor::~Executor() = default;

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, Loop::Body body) {
  check_range(begin, end, grain);
  const FloatEnvironment environment;
  Loop loop(begin, end, grain, body);
  const int limit = loop.num_chunks() > 1 ? num_threads() : 1;
  if (limit == 1) {
    for (std::int64_t chunk = 0; chunk < loop.num_chunks(); ++chunk) loop.run_chunk(chunk);
    return;
  }
  Cancellation* cancellation = Cancellation::current();
  const auto work = [&, caller = std::this_thread::get_id()] {
    const FloatEnvironment environment_of_thread;
    const ContextScope scope({.limit = limit, .is_inside_loop = true});
    const CancellationScope cancellation_scope(cancellation);
    loop.work();
    if (cancellation != nullptr && std::this_thread::get_id() == caller) {
      loop.await_others(*cancellation);
    }
  };
  const auto count = static_cast<int>(std::min<std::int64_t>(limit, loop.num_chunks()));
  Settings::instance().executor()->run(count, work);
  work();
  loop.rethrow_failure();
}

int num_threads() {
  if (loop_context.limit != 0) return loop_context.limit;
  const Settings& settings = Settings::instance();
  const int chosen = settings.num_threads();
  return chosen != 0 ? chosen : std::max(settings.executor()->num_threads(), 1);
}

void set_num_threads(int count) {
  if (count < 0 || count > kMaxThreads) {
    throw InvalidArgument(
        fmt::format("set_num_threads: count is {}, 0 to {} is expected", count, kMaxThreads));
  }
  Settings::instance().set_num_threads(count);
}

ThreadLimit::ThreadLimit(int count) : outer_limit_(loop_context.limit) {
  if (count < 1) {
    throw InvalidArgument(fmt::format("ThreadLimit: count is {}, at least 1 is expected", count));
  }
  loop_context.limit = std::min(count, num_threads());
}

ThreadLimit::~ThreadLimit() { loop_context.limit = outer_limit_; }

Executor& default_executor() { return Settings::instance().pool(); }

void set_executor(std::shared_ptr<Executor> executor) {
  Settings::instance().set_executor(std::move(executor));
}

}}  // namespace heed::v0
