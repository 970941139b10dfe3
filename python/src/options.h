// The options of attention in Python and in the library.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <optional>

#include "arrays.h"
#include "call.h"
#include "heed/attention.h"
#include "heed/attention/relative_position.h"
#include "masks.h"

namespace heed::python {

// The tuple (table, buckets).
struct RelativeTable {
  Array table;
  RelativeBuckets buckets;
};

// The tuple (key, value, buckets), where each table may be missing.
struct RelativeVectorTables {
  std::optional<Array> key;
  std::optional<Array> value;
  RelativeBuckets buckets;
};

// The keyword arguments of heed.attention(). Arrays are kept unchanged, because the type of the
// computation depends on the query.
struct Options {
  MaskObject mask;
  nb::object score_mod;  // not valid if there is none
  std::optional<Array> alibi_slopes;
  std::optional<Array> bias;
  std::optional<RelativeTable> relative_bias;
  std::optional<RelativeVectorTables> relative_vectors;
  std::optional<Array> sinks;
  std::optional<double> scale;
  double softcap = 0;
  Dropout dropout;
  QueryOffset query_offset = {};
  Precision precision = Precision::kFast;

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
  std::array<std::optional<Tensor<Real>>, 6> copies_;
};

void bind_options(nb::module_& module);

}  // namespace heed::python
