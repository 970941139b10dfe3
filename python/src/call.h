// A computation for Python: it runs without the interpreter's lock, and stops when a signal's
// handler or a function of the caller's raises.
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
  // The one that the current thread computes for. There must be one.
  static Call& current() noexcept { return *static_cast<Call*>(Cancellation::current()); }

  // Whether the interpreter ends, and not in the thread that made the call: nobody waits for it.
  bool is_abandoned() const noexcept;

  // Lets Python handle signals, where the thread that made the call is the main one.
  void poll() noexcept override;

  // Keeps the exception that is being handled, if it is the first, and stops the computation. Needs
  // the lock.
  void fail() noexcept;

  // Raises what was kept. Needs the lock.
  void raise_failure() const;

 private:
  using Clock = std::chrono::steady_clock;
  // The lock may be some milliseconds away.
  static constexpr std::chrono::milliseconds kInterval{100};

  // Of a computation that this one is part of, such as one of several ranks.
  const Cancellation* outer_ = Cancellation::current();
  std::thread::id thread_ = std::this_thread::get_id();
  Clock::time_point next_poll_;  // none before the first poll
  bool may_handle_signals_ = true;
  std::exception_ptr failure_;
};

// At its end an interpreter does not wait for daemon threads. Before 3.14 Python unwinds those that
// ask it for the lock, through destructors that must not throw: where such a thread asks in what
// follows, it waits until the process is gone, as in Python 3.14.

// Holds the interpreter's lock while it lives, in any thread.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

// Gives the lock away for a call while it lives.
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

// function(*arguments), with the lock held. Raises what it raises.
nb::object call_function(nb::handle function, const nb::tuple& arguments);

// What an exception says, or its type where it says nothing.
std::string text_of(const nb::python_error& error);

// compute() without the lock: it must touch no object of Python's.
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

// The same on at most `num_threads` threads.
template <class Compute>
auto without_lock(std::optional<int> num_threads, Compute compute) {
  return without_lock([&] {
    std::optional<ThreadLimit> limit;
    if (num_threads) limit.emplace(*num_threads);
    return compute();
  });
}

// Has computations stop when the interpreter ends. To be called once.
void end_calls_at_exit();

}  // namespace heed::python
