#include "bench/forward_case.h"

#include <fmt/format.h>

#include <algorithm>

#include "heed/error.h"
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
    throw UsageError(fmt::format("--causal or --window: {}", error.what()));
  }
}

Mask mask_of(const ForwardCase& forward) {
  return parse_causal_and_window(forward.causal, forward.window);
}

double visible_pairs(const ForwardCase& forward) {
  std::int64_t pairs = forward.q_len * forward.kv_len;
  if (!forward.causal.empty() || !forward.window.empty()) {
    const Alignment alignment = parse_alignment(forward.causal);
    alignment.check(forward.causal.empty() ? "sliding_window" : "causal", shape_of(forward));
    const std::int64_t offset = alignment.resolve(shape_of(forward), 0);
    WindowSides sides;
    if (!forward.window.empty()) sides = parse_window("--window", forward.window);
    if (!forward.causal.empty()) sides.right = 0;
    // A side is never longer than the sequence, so that unbounded ones do not overflow.
    const std::int64_t longest = forward.q_len + forward.kv_len;
    pairs = 0;
    for (std::int64_t q = 0; q < forward.q_len; ++q) {
      const std::int64_t begin =
          std::max<std::int64_t>(q + offset - std::min(sides.left, longest), 0);
      const std::int64_t end =
          std::min(q + offset + std::min(sides.right, longest) + 1, forward.kv_len);
      pairs += std::max<std::int64_t>(end - begin, 0);
    }
  }
  return static_cast<double>(pairs) * static_cast<double>(forward.batch) *
         static_cast<double>(forward.num_heads);
}

double operations(const ForwardCase& forward) {
  return 2 * visible_pairs(forward) * static_cast<double>(forward.head_dim + forward.value_dim);
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
