// Runs a computation for Python without the interpreter lock (GIL). It stops when a signal handler
// or a function of the caller raises.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include "heed/core/cancellation.h"
#include "heed/core/parallel.h"

namespace heed::python {

namespace nb = nanobind;

class Call final : public Cancellation {
 public:
  // The call that the current thread computes for. There must be one.
  static Call& current() noexcept { return *static_cast<Call*>(Cancellation::current()); }

  // True if the interpreter ends in another thread than that of the call: its result is not needed.
  bool is_abandoned() const noexcept;

  // Lets Python handle signals if the call was made on the main thread.
  void poll() noexcept override;

  // Keeps the exception that is being handled, unless an earlier one is kept, and stops the
  // computation. Needs the GIL.
  void fail() noexcept;

  // Raises the kept exception, if any. Needs the GIL.
  void raise_failure() const;

 private:
  using Clock = std::chrono::steady_clock;
  // Acquiring the GIL may take some milliseconds.
  static constexpr std::chrono::milliseconds kInterval{100};

  // The outer computation that this one is part of, such as that of several ranks.
  const Cancellation* outer_ = Cancellation::current();
  std::thread::id thread_ = std::this_thread::get_id();
  Clock::time_point next_poll_;  // unset before the first poll
  bool may_handle_signals_ = true;
  std::exception_ptr failure_;
};

// An ending interpreter does not wait for daemon threads. Before 3.14, Python unwinds those that
// acquire the GIL, through destructors that must not throw. In the functions below such a thread
// waits until the process ends, as in Python 3.14.

// Holds the GIL while it exists, in any thread.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

// Releases the GIL while it exists, for the computation of a call.
class Unlocked {
 public:
  explicit Unlocked(const Call& call) : call_(call), state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  const Call& call_;
  PyThreadState* state_;
};

// Calls function(*arguments) with the GIL held. Raises what it raises.
nb::object call_function(nb::handle function, const nb::tuple& arguments);

// The message of an exception, or its type if the message is empty.
std::string text_of(const nb::python_error& error);

// Runs compute() without the GIL: it must not touch Python objects.
template <class Compute>
auto without_lock(Compute compute) {
  Call call;
  try {
    auto result = [&] {
      const Unlocked unlocked(call);
      const CancellationScope scope(&call);
      return compute();
    }();
    call.raise_failure();
    return result;
  } catch (const Cancelled&) {
    call.raise_failure();
    throw;
  }
}

// Runs compute() without the GIL on at most `num_threads` threads.
template <class Compute>
auto without_lock(std::optional<int> num_threads, Compute compute) {
  return without_lock([&] {
    std::optional<ThreadLimit> limit;
    if (num_threads) limit.emplace(*num_threads);
    return compute();
  });
}

// Stops computations when the interpreter ends. To be called once.
void end_calls_at_exit();

}  // namespace heed::python
