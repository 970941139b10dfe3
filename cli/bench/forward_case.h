// One attention call to measure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/core/data_type.h"

namespace heed::cli {

// The values of `causal`: none, or the alignment of the causal mask.
inline const std::vector<std::string> kCausalNames{"none", "square", "top_left", "bottom_right"};

struct ForwardCase {
  std::string path = "fused";
  std::string dtype = "float32";
  std::string layout = "bhtd";
  std::string causal;         // empty: not causal
  std::string mask;           // in the syntax of heed::parse_mask, or empty
  std::string with = "none";  // one of kCaseOptionNames
  std::int64_t batch = 1;
  std::int64_t num_heads = 8;
  std::int64_t num_kv_heads = 8;
  std::int64_t q_len = 1024;
  std::int64_t kv_len = 1024;
  std::int64_t head_dim = 64;
  std::int64_t value_dim = 64;
  int threads = 1;

  bool operator==(const ForwardCase&) const = default;
};

// Throws UsageError when attention would refuse the case or does not support it.
void check(const ForwardCase& forward);

Mask mask_of(const ForwardCase& forward);

// Returns the number of (query, key) pairs that the mask lets through, in all heads.
double visible_pairs(const ForwardCase& forward);

// Returns 2 · pairs · head_dim for the scores plus 2 · pairs · value_dim for the output. The
// softmax is not counted.
double operations(const ForwardCase& forward);

// Calls use(T{}) with the type that the case names.
template <class Use>
auto with_dtype(const ForwardCase& forward, const Use& use) {
  if (forward.dtype == "float64") return use(double{});
  if (forward.dtype == "float16") return use(Float16());
  if (forward.dtype == "bfloat16") return use(BFloat16());
  return use(float{});
}

// Returns the processor's peak rate in the type that is multiplied, divided by its peak rate in
// float.
double peak_factor(const ForwardCase& forward);

nlohmann::ordered_json describe(const ForwardCase& forward);

}  // namespace heed::cli
