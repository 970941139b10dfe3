/// Stopping a computation before it is done.
#pragma once

#include <atomic>
#include <stdexcept>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// Thrown by a computation that was asked to stop. What it was to return is lost; a buffer that it
/// was given to write to holds anything.
class HEED_API Cancelled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Cancelled() override;
};

/// A request to stop that computations look at again and again, on all their threads, between
/// pieces of work of some milliseconds. Looking changes no result.
///
///     heed::Cancellation cancellation;  // another thread calls cancellation.request()
///     const heed::CancellationScope scope(&cancellation);
///     out = heed::attention(query, key, value);  // throws Cancelled soon after
///
/// Attention in all its forms and ways back, masks that become tensors, and parallel_for look.
/// Derive from it to find out whether to stop: see poll().
class HEED_API Cancellation {
 public:
  Cancellation() = default;
  virtual ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  /// Asks all that is computed under it to stop, for good. For any thread, and for signal handlers.
  void request() noexcept { is_requested_.store(true, std::memory_order_relaxed); }
  bool is_requested() const noexcept { return is_requested_.load(std::memory_order_relaxed); }

  /// What the current thread computes under: that of the innermost scope, in the threads of a
  /// computation that of its caller. Null where there is none.
  static Cancellation* current() noexcept;

  /// Called by every thread that computes under it before it looks, thousands of times a second; by
  /// the thread that started a loop also while it waits for others. It may call request().
  virtual void poll() noexcept {}

 private:
  std::atomic<bool> is_requested_ = false;
};

/// Puts what the current thread computes while the scope lives under a cancellation, which must
/// outlive it, instead of that of the scope around it. Null: under none.
class HEED_API CancellationScope {
 public:
  explicit CancellationScope(Cancellation* cancellation) noexcept;
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  Cancellation* outer_;
};

/// For loops of one's own.
/// @throws Cancelled where the current thread's computation was asked to stop.
HEED_API void check_cancelled();

}}  // namespace heed::v0
