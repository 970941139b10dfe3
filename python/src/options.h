// The options of attention as Python gives them, and as the library takes them.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "arrays.h"
#include "heed/attention.h"
#include "heed/parallel.h"
#include "masks.h"

namespace heed::python {

// What the keywords of heed.attention() said. Arrays are held as they came, for which type scores
// are computed in depends on the query.
struct Options {
  MaskObject mask;
  std::shared_ptr<Callable> score_mod;
  std::optional<Array> alibi_slopes;
  std::optional<Array> bias;
  std::optional<Array> sinks;
  std::optional<double> scale;
  double softcap = 0;
  Dropout dropout;
  std::int64_t query_offset = 0;

  // All functions of Python's among them.
  Callables callables() const;
};

// The same for one call. It refers to the Options, and owns what had to be copied into another
// type; it can be neither copied nor moved.
template <class Real>
class CallOptions {
 public:
  CallOptions(const char* function, const Options& options);
  CallOptions(const CallOptions&) = delete;
  CallOptions& operator=(const CallOptions&) = delete;

  const BasicAttentionOptions<Real>& operator*() const noexcept { return options_; }

 private:
  BasicAttentionOptions<Real> options_;
  std::array<std::optional<Tensor<Real>>, 3> copies_;
};

// compute() on at most `num_threads` threads, without the interpreter's lock: it must touch no
// Python object. What functions among the options raise is raised.
template <class Compute>
auto unlocked(const Options& options, std::optional<int> num_threads, Compute compute) {
  const Callables callables = options.callables();
  const FailureWatch watch(callables);
  auto result = [&] {
    const nb::gil_scoped_release released;
    std::optional<ThreadLimit> limit;
    if (num_threads) limit.emplace(*num_threads);
    return compute();
  }();
  watch.raise();
  return result;
}

void bind_options(nb::module_& module);

}  // namespace heed::python
