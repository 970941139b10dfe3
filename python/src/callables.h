// Masks and modifications of scores written in Python.
//
// The function is called with NumPy arrays for a whole tile of scores, by any thread that gets the
// interpreter's lock. Kernels cannot be interrupted: what the function raises is kept, the
// computation goes on, and its caller raises it at the end.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "heed/mask.h"
#include "heed/score_mod.h"

namespace heed::python {

namespace nb = nanobind;

// A function of Python's. Its last owner may let it go without the interpreter's lock.
class Callable {
 public:
  explicit Callable(nb::callable function) : function_(std::move(function)) {}
  Callable(const Callable&) = delete;
  Callable& operator=(const Callable&) = delete;
  ~Callable();

  // The function's result; not valid when it raised. Needs the interpreter's lock.
  nb::object call(const nb::tuple& arguments) noexcept;

  // To be called where the function's result is of no use, within a catch block.
  void keep_failure() noexcept;

  std::int64_t num_failures() const noexcept { return num_failures_; }
  [[noreturn]] void raise_failure();

 private:
  nb::callable function_;
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::atomic<std::int64_t> num_failures_ = 0;
};

using Callables = std::vector<std::shared_ptr<Callable>>;

// Raises, after a computation, what functions raised meanwhile.
class FailureWatch {
 public:
  explicit FailureWatch(const Callables& callables);
  void raise() const;

 private:
  const Callables& callables_;
  std::vector<std::int64_t> before_;
};

// visible(b, h, q_idx, kv_idx) -> booleans
Mask mask_where(std::shared_ptr<Callable> visible);

// function(score, b, h, q_idx, kv_idx) -> scores; it has no derivative.
ScoreMod score_mod_of(std::shared_ptr<Callable> function);

}  // namespace heed::python
