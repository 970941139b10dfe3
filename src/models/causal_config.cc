#include "heed/models/causal_config.h"

#include <fmt/format.h>

#include <string_view>

#include "heed/attention/mask.h"
#include "heed/attention/mask_text.h"
#include "heed/attention/relative_position.h"
#include "heed/attention/rotary.h"
#include "heed/core/error.h"
#include "models/settings.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// The largest distance that has its own table entry with shaw and clip.
constexpr std::int64_t kClippedDistance = 32;

void check_positions(const CausalConfig& config, SettingNames names) {
  check_setting("positions", config.positions, position_names(), names);
  const std::string d_model = name_of_setting("d_model", names);
  if (config.positions == "sinusoidal" && config.d_model % 2 != 0) {
    throw InvalidArgument(fmt::format("{} is {}, expected an even number for sinusoidal positions",
                                      d_model, config.d_model));
  }
  if (config.positions == "rotary" && config.d_model / config.heads % 2 != 0) {
    throw InvalidArgument(fmt::format(
        "{} is {} and {} {}, so that a head has {} dimensions, expected an even number for rotary "
        "positions",
        d_model, config.d_model, name_of_setting("heads", names), config.heads,
        config.d_model / config.heads));
  }
}

Mask parsed_mask(const CausalConfig& config, SettingNames names) {
  try {
    return parse_mask(config.mask);
  } catch (const InvalidArgument& error) {
    constexpr std::string_view kFunction = "parse_mask: ";
    std::string_view problem = error.what();
    if (problem.starts_with(kFunction)) problem.remove_prefix(kFunction.size());
    throw InvalidArgument(fmt::format("{}: {}", name_of_setting("mask", names), problem));
  }
}

// Checks that the mask fits batches of a whole context, the longer ones in evaluation, and a text
// that is generated token by token.
void check_mask(const CausalConfig& config, SettingNames names) {
  const Mask mask = parsed_mask(config, names);
  const std::int64_t context = config.context;
  const ScoreShape shapes[] = {{2, 0, context, context},
                               {1, 0, 4 * context, 4 * context},
                               {1, 0, 1, 1},
                               {1, 0, 1, context, context - 1}};
  try {
    for (const ScoreShape& shape : shapes) count_visible(mask, shape);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{} '{}' does not fit sequences of any length: {}",
                                      name_of_setting("mask", names), config.mask, error.what()));
  }
}

}  // namespace

void check_config(const CausalConfig& config, SettingNames names) {
  check_setting("the vocabulary", config.vocab_size, {1, 100'000}, names);
  check_setting("context", config.context, {1, 65'536}, names);
  check_setting("layers", config.layers, {1, 24}, names);
  check_setting("d_model", config.d_model, {1, 1024}, names);
  check_setting("heads", config.heads, {1, 64}, names);
  if (config.d_model % config.heads != 0) {
    throw InvalidArgument(fmt::format("{} is {}, expected a multiple of {}, {}",
                                      name_of_setting("d_model", names), config.d_model,
                                      name_of_setting("heads", names), config.heads));
  }
  check_positions(config, names);
  check_mask(config, names);
}

const std::vector<std::string>& position_names() {
  static const std::vector<std::string> all_names{"none",  "sinusoidal", "learned", "rotary",
                                                  "alibi", "t5",         "shaw",    "clip"};
  return all_names;
}

nn::AttentionConfig attention_config(const CausalConfig& config, std::int64_t longest) {
  nn::AttentionConfig attention = nn::separate_projections(config.d_model, config.heads);
  const std::string& positions = config.positions;
  if (positions == "rotary") {
    attention.rotary = {.max_len = longest, .pairing = RotaryPairing::kHalves};
  }
  attention.alibi = positions == "alibi";
  if (positions == "t5") attention.relative_bias = RelativeBuckets::t5(32, 128, false);
  if (positions == "clip") attention.relative_bias = RelativeBuckets::clip(kClippedDistance);
  if (positions == "shaw") attention.relative_vectors = RelativeBuckets::clip(kClippedDistance);
  return attention;
}

}}}  // namespace heed::v0::models
