/// Cancellation of computations.
#pragma once

#include <atomic>
#include <stdexcept>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// Thrown by a computation that was cancelled. Its result is lost; the contents of buffers that it
/// wrote to are undefined.
class HEED_API Cancelled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  ~Cancelled() override;
};

/// A request to stop, which computations check on all their threads, between pieces of work of some
/// milliseconds. Checking changes no result.
///
///     heed::Cancellation cancellation;  // another thread calls cancellation.request()
///     const heed::CancellationScope scope(&cancellation);
///     out = heed::attention(query, key, value);  // throws Cancelled soon after
///
/// Attention in all its forms and their backward passes, masks that become tensors, and
/// parallel_for check it. Override poll() to decide when to stop.
class HEED_API Cancellation {
 public:
  Cancellation() = default;
  virtual ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  /// Asks all computations under it to stop, permanently. May be called from any thread, and from
  /// signal handlers.
  void request() noexcept { is_requested_.store(true, std::memory_order_relaxed); }
  bool is_requested() const noexcept { return is_requested_.load(std::memory_order_relaxed); }

  /// The cancellation of the current thread: that of the innermost scope; in the threads of a
  /// computation, that of its caller. Null where there is none.
  static Cancellation* current() noexcept;

  /// Called by every thread of a computation before each check, thousands of times a second; the
  /// thread that started a loop calls it also while it waits for others. It may call request().
  virtual void poll() noexcept {}

 private:
  std::atomic<bool> is_requested_ = false;
};

/// During the lifetime of the scope, computations of the current thread check `cancellation`, which
/// must outlive the scope, instead of that of the scope around it. Null: none.
class HEED_API CancellationScope {
 public:
  explicit CancellationScope(Cancellation* cancellation) noexcept;
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  Cancellation* outer_;
};

/// The check for loops in user code.
/// @throws Cancelled where the current thread's computation was asked to stop.
HEED_API void check_cancelled();

}}  // namespace heed::v0
