#include "heed/nn/attention_config.h"

#include <fmt/format.h>

#include <utility>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

std::int64_t head_dim_of(const AttentionConfig& config) {
  if (config.embed_dim < 1 || config.num_heads < 1 || config.head_dim < 0) {
    throw InvalidArgument(
        fmt::format("{}: embed_dim is {}, num_heads {} and head_dim {}; expected positive numbers",
                    config.class_name, config.embed_dim, config.num_heads, config.head_dim));
  }
  if (config.head_dim != 0) return config.head_dim;
  if (config.embed_dim % config.num_heads != 0) {
    throw InvalidArgument(fmt::format("{}: embed_dim {} is not a multiple of num_heads, {}",
                                      config.class_name, config.embed_dim, config.num_heads));
  }
  return config.embed_dim / config.num_heads;
}

std::int64_t num_kv_heads_of(const AttentionConfig& config) {
  if (config.num_kv_heads == 0) return config.num_heads;
  if (config.num_kv_heads > 0 && config.num_heads % config.num_kv_heads == 0) {
    return config.num_kv_heads;
  }
  throw InvalidArgument(fmt::format("{}: num_kv_heads is {}, expected a divisor of num_heads, {}",
                                    config.class_name, config.num_kv_heads, config.num_heads));
}

void check_rotary(const AttentionConfig& config, const RotaryConfig& rotary) {
  if (rotary.max_len < 0 || rotary.scaled_length < 0) {
    throw InvalidArgument(
        fmt::format("{}: rotary.max_len is {} and rotary.scaled_length is {}; expected at least 0",
                    config.class_name, rotary.max_len, rotary.scaled_length));
  }
  if (rotary.rotary_dim < 0 || rotary.rotary_dim > config.head_dim || rotary.rotary_dim % 2 != 0) {
    throw InvalidArgument(
        fmt::format("{}: rotary_dim is {}, expected an even number up to head_dim, {}",
                    config.class_name, rotary.rotary_dim, config.head_dim));
  }
  if (!rotary.pairing) {
    throw InvalidArgument(fmt::format(
        "{}: rotary.pairing is not named, expected RotaryPairing::kHalves or kNeighbours",
        config.class_name));
  }
}

// Returns the rotary settings of a configuration with a known head_dim.
RotaryConfig rotary_of(const AttentionConfig& config) {
  RotaryConfig rotary = config.rotary;
  if (rotary.max_len == 0) return rotary;
  if (rotary.rotary_dim == 0) rotary.rotary_dim = config.head_dim;
  check_rotary(config, rotary);
  if (rotary.scaled_length == 0) rotary.scaled_length = rotary.max_len;
  return rotary;
}

void check_names(const AttentionConfig& config) {
  const std::size_t num_inputs = config.inputs.size();
  if (num_inputs != 1 && num_inputs != 3) {
    throw InvalidArgument(fmt::format("{}: inputs has {} names, expected one or three",
                                      config.class_name, num_inputs));
  }
  if (!config.has_head_axis && config.num_heads != 1) {
    throw InvalidArgument(fmt::format("{}: has_head_axis is false but num_heads is {}, expected 1",
                                      config.class_name, config.num_heads));
  }
}

// Refuses, for a layer without a softmax, the options that need one.
void check_feature_map(const AttentionConfig& config) {
  if (!config.feature_map) return;
  const std::pair<bool, const char*> refused[] = {
      {!config.mask.parts().empty(), "mask"},
      {config.selected_blocks.has_value(), "selected_blocks"},
      {config.scale.has_value(), "scale"},
      {config.softcap != 0, "softcap"},
      {config.alibi, "alibi"},
      {config.relative_bias.has_value(), "relative_bias"},
      {config.relative_vectors.has_value(), "relative_vectors"},
      {config.weight_dropout.p != 0, "weight_dropout"}};
  for (const auto& [is_given, option] : refused) {
    if (!is_given) continue;
    throw InvalidArgument(
        fmt::format("{}: {} is given beside feature_map, which has no scores to apply it to",
                    config.class_name, option));
  }
}

}  // namespace

AttentionConfig fused_projection(std::int64_t embed_dim, std::int64_t num_heads, double dropout) {
  return {.embed_dim = embed_dim,
          .num_heads = num_heads,
          .inputs = {"qkv_proj"},
          .bias = false,
          .out_dropout = {"dropout", dropout}};
}

AttentionConfig separate_projections(std::int64_t embed_dim, std::int64_t num_heads,
                                     double dropout) {
  return {.embed_dim = embed_dim,
          .num_heads = num_heads,
          .core = "attention",
          .weight_dropout = {"dropout", dropout}};
}

AttentionConfig cross_projections(std::int64_t d_model, std::int64_t num_heads, double dropout) {
  return {.embed_dim = d_model,
          .num_heads = num_heads,
          .inputs = {"W_q", "W_k", "W_v"},
          .out = "W_o",
          .weight_dropout = {"dropout", dropout}};
}

AttentionConfig twice_dropped(std::int64_t d_model, std::int64_t num_heads, double dropout) {
  return {.embed_dim = d_model,
          .num_heads = num_heads,
          .weight_dropout = {"attn_dropout", dropout},
          .out_dropout = {"out_dropout", dropout}};
}

AttentionConfig resolved(const AttentionConfig& config) {
  AttentionConfig result = config;
  result.head_dim = head_dim_of(config);
  result.num_kv_heads = num_kv_heads_of(config);
  check_names(config);
  check_feature_map(config);
  result.rotary = rotary_of(result);
  return result;
}

}}}  // namespace heed::v0::nn
