// The options of attention in Python and in the library.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

#include "arrays.h"
#include "call.h"
#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/attention/relative_position.h"
#include "masks.h"

namespace heed::python {

inline constexpr std::size_t kNumLearned = std::size(kLearnable<float>);

// An array that can be learned, and its name in errors: "bias", "relative_vectors.key".
struct LearnedArray {
  std::string name;
  Array array;
};

// The keyword arguments of heed.attention(). Arrays are kept unchanged, because the type of the
// computation depends on the query.
struct Options {
  MaskObject mask;
  nb::object score_mod;  // not valid if there is none
  // In the order of kLearnable.
  std::array<std::optional<LearnedArray>, kNumLearned> learned;
  // Of the learned tables; absent where the option is.
  std::optional<RelativeBuckets> bias_buckets;
  std::optional<RelativeBuckets> vector_buckets;
  std::optional<double> scale;
  double softcap = 0;
  Dropout dropout;
  QueryOffset query_offset = {};
  Precision precision = Precision::kFast;

  // True if something other than products of queries and keys changes the scores or the output.
  bool have_terms() const;
  // All Python functions that the options refer to.
  FunctionHandles functions() const;
};

// The options for one call. It refers to the Options, owns arrays that had to be converted, and can
// be neither copied nor moved.
template <class Real>
class CallOptions {
 public:
  CallOptions(const char* function, const Options& options);
  CallOptions(const CallOptions&) = delete;
  CallOptions& operator=(const CallOptions&) = delete;

  const BasicAttentionOptions<Real>& operator*() const noexcept { return options_; }

 private:
  BasicAttentionOptions<Real> options_;
  std::array<std::optional<Tensor<Real>>, kNumLearned> copies_;
};

void bind_options(nb::module_& module);

}  // namespace heed::python
