#include "train/positions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "heed/relative_position.h"
#include "heed/rotary.h"

namespace heed::cli {

namespace {

// The furthest distance that has an entry of its own with shaw and clip.
constexpr std::int64_t kClippedDistance = 32;

}  // namespace

const std::vector<std::string>& position_names() {
  static const std::vector<std::string> all_names{"none",  "sinusoidal", "learned", "rotary",
                                                  "alibi", "t5",         "shaw",    "clip"};
  return all_names;
}

void check_positions(const ModelSettings& settings) {
  const auto& names = position_names();
  if (std::find(names.begin(), names.end(), settings.positions) == names.end()) {
    throw UsageError(fmt::format("--positions is '{}', expected one of {}", settings.positions,
                                 fmt::join(names, ", ")));
  }
  if (settings.positions == "sinusoidal" && settings.d_model % 2 != 0) {
    throw UsageError(fmt::format(
        "--d-model is {}, expected an even number for sinusoidal positions", settings.d_model));
  }
  if (settings.positions == "rotary" && settings.d_model / settings.heads % 2 != 0) {
    throw UsageError(
        fmt::format("--d-model is {} and --heads {}, so that a head has {} dimensions, expected an "
                    "even number for rotary positions",
                    settings.d_model, settings.heads, settings.d_model / settings.heads));
  }
}

nn::AttentionConfig attention_config(const ModelSettings& settings, std::int64_t longest) {
  nn::AttentionConfig config = nn::separate_projections(settings.d_model, settings.heads);
  const std::string& positions = settings.positions;
  if (positions == "rotary") {
    config.rotary = {.max_len = longest, .pairing = RotaryPairing::kHalves};
  }
  config.alibi = positions == "alibi";
  if (positions == "t5") config.relative_bias = RelativeBuckets::t5(32, 128, false);
  if (positions == "clip") config.relative_bias = RelativeBuckets::clip(kClippedDistance);
  if (positions == "shaw") config.relative_vectors = RelativeBuckets::clip(kClippedDistance);
  return config;
}

}  // namespace heed::cli
