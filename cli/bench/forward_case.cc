#include "bench/forward_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "heed/attention.h"
#include "heed/core/error.h"
#include "mask_argument.h"
#include "verbs.h"

namespace heed::cli {

namespace {

ScoreShape shape_of(const ForwardCase& forward) {
  return {forward.batch, forward.num_heads, forward.q_len, forward.kv_len};
}

void check_type(const ForwardCase& forward) {
  if (forward.dtype != "float32" && forward.dtype != "float64" && forward.path == "reference") {
    throw UsageError(fmt::format("--path reference computes float32 and float64, not --dtype {}",
                                 forward.dtype));
  }
}

}  // namespace

void check(const ForwardCase& forward) {
  check_type(forward);
  if (forward.num_heads % forward.num_kv_heads != 0) {
    throw UsageError(fmt::format("--heads is {}, expected a multiple of --kv-heads, {}",
                                 forward.num_heads, forward.num_kv_heads));
  }
  try {
    visible_pairs(forward);
  } catch (const InvalidArgument& error) {
    throw UsageError(fmt::format("--causal or --mask: {}", error.what()));
  }
}

Mask mask_of(const ForwardCase& forward) {
  const Mask mask = forward.causal.empty()
                        ? Mask()
                        : parse_mask("--causal", fmt::format("causal({})", forward.causal));
  return forward.mask.empty() ? mask : mask & parse_mask("--mask", forward.mask);
}

double visible_pairs(const ForwardCase& forward) {
  ScoreShape shape = shape_of(forward);
  double factor = 1;
  if (forward.mask.empty()) {  // one mask for every batch entry and head
    factor = static_cast<double>(shape.batch) * static_cast<double>(shape.num_heads);
    shape.batch = shape.num_heads = 1;
  }
  return factor * static_cast<double>(count_visible(mask_of(forward), shape));
}

double operations(const ForwardCase& forward) {
  return 2 * visible_pairs(forward) * static_cast<double>(forward.head_dim + forward.value_dim);
}

double peak_factor(const ForwardCase& forward) {
  if (forward.dtype == "float64") return 0.5;
  const std::string target = attention_target();
  if (forward.dtype != "bfloat16" || forward.with == "exact" || !target.ends_with("_BF16")) {
    return 1;
  }
  if (target != "AMX_BF16") return 2;
  const bool fits = forward.head_dim % 32 == 0 && forward.value_dim % 32 == 0 &&
                    std::max(forward.head_dim, forward.value_dim) <= 256;
  return fits ? 16 : 1;
}

nlohmann::ordered_json describe(const ForwardCase& forward) {
  return {{"path", forward.path},
          {"dtype", forward.dtype},
          {"layout", forward.layout},
          {"batch", forward.batch},
          {"heads", forward.num_heads},
          {"kv_heads", forward.num_kv_heads},
          {"seq", forward.q_len},
          {"kv_seq", forward.kv_len},
          {"head_dim", forward.head_dim},
          {"value_dim", forward.value_dim},
          {"mask", mask_of(forward).description()},
          {"with", forward.with},
          {"visible_pairs", static_cast<std::int64_t>(visible_pairs(forward))},
          {"threads", forward.threads}};
}

}  // namespace heed::cli
