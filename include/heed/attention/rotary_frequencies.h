/// How fast each pair of dimensions of a rotary embedding turns, and how a trained model's
/// frequencies are scaled for sequences longer than those that it has seen.
///
/// Below, d is rotary_dim, i = 0 … d/2 − 1 a pair, and f_i = 1 / base^(2i / d) its frequency
/// without scaling, in radians per position. Parameters without a usual value are 0 and must be
/// given: those of a model stand in its configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// f_i / factor: positions are interpolated.
/// Source: Chen et al., "Extending Context Window of Large Language Models via Positional
/// Interpolation", 2023.
struct LinearScaling {
  double factor = 0;  ///< at least 1
};

/// f_i of a greater base, for sequences longer than original_max_len:
///
///     base · (factor · n / original_max_len − (factor − 1))^(d / (d − 2)),
///     n = max(length, original_max_len)
///
/// Source: bloc97, "NTK-Aware Scaled RoPE", and emozilla, "Dynamically Scaled RoPE", both 2023; as
/// transformers computes it, where original_max_len is a configuration's max_position_embeddings.
struct DynamicNtkScaling {
  double factor = 0;  ///< at least 1
  std::int64_t original_max_len = 0;
};

/// Fast pairs keep their frequency, slow ones are interpolated, and those between are mixed:
///
///     (1 − r_i) · f_i + r_i · f_i / factor,   r_i = (i − low) / (high − low), clamped to 0 … 1
///     low = max(⌊c(beta_fast)⌋, 0),   high = min(⌈c(beta_slow)⌉, d − 1)
///     c(n) = d · ln(original_max_len / (2π · n)) / (2 · ln(base))
///
/// where c(n) is the pair that turns n times within original_max_len. Where low and high are
/// equal, high is greater by 0.001. The attention factor is
///
///     m(1), or m(mscale) / m(mscale_all_dim) where both are given,
///     m(w) = 1 + 0.1 · w · ln(factor)
///
/// Source: Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", 2023,
/// and its code; mscale is DeepSeek-V2's.
struct YarnScaling {
  double factor = 0;  ///< at least 1
  std::int64_t original_max_len = 0;
  double beta_fast = 32;
  double beta_slow = 1;  ///< less than beta_fast
  bool truncate = true;  ///< whether c(n) is rounded; gpt-oss does without
  std::optional<double> attention_factor = std::nullopt;  ///< in place of the equation's
  std::optional<double> mscale = std::nullopt;
  std::optional<double> mscale_all_dim = std::nullopt;
};

/// A divisor for each pair, found by a search: f_i / long_factor[i] where length is greater than
/// original_max_len, f_i / short_factor[i] otherwise. The attention factor of either is
///
///     √(1 + ln(factor) / ln(original_max_len))
///
/// Source: Ding et al., "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens", 2024, and
/// Phi-3's code, whose first versions call it su.
struct LongRopeScaling {
  std::vector<double> short_factor = {};  ///< [rotary_dim / 2]
  std::vector<double> long_factor = {};   ///< [rotary_dim / 2]
  std::int64_t original_max_len = 0;      ///< at least 2
  /// At least 1: a configuration's max_position_embeddings / original_max_position_embeddings. Not
  /// needed with attention_factor.
  double factor = 0;
  std::optional<double> attention_factor = std::nullopt;  ///< in place of the equation's
};

/// As YaRN's, but the mixture depends on how often a pair turns within original_max_len:
///
///     s_i · f_i + (1 − s_i) · f_i / factor,
///     s_i = (t_i − low_freq_factor) / (high_freq_factor − low_freq_factor), clamped to 0 … 1,
///     t_i = original_max_len · f_i / 2π
///
/// Source: the code of Llama 3.1 (Meta, 2024).
struct Llama3Scaling {
  double factor = 0;  ///< at least 1
  std::int64_t original_max_len = 0;
  double low_freq_factor = 1;
  double high_freq_factor = 4;  ///< greater than low_freq_factor
};

/// How frequencies are scaled; {}: not at all.
using RotaryScaling = std::variant<std::monostate, LinearScaling, DynamicNtkScaling, YarnScaling,
                                   LongRopeScaling, Llama3Scaling>;

struct RotaryFrequencies {
  Tensor<double> inv_freq;      ///< radians per position, [rotary_dim / 2]
  double attention_factor = 1;  ///< of every cosine and sine, so that scores have its square
};

/// The frequencies of rotary_dim turned dimensions, computed in double.
/// @param rotary_dim how many dimensions of a head are turned, all or the first ones: even
/// @param length how long the whole sequence is, what a cache holds of it included; needed for
/// DynamicNtkScaling and LongRopeScaling, which depend on it, and ignored otherwise. All tokens of
/// a sequence need the frequencies of one length: keys that have been turned stay as they are.
/// @throws InvalidArgument when rotary_dim is negative or odd, base is not positive (for
/// YarnScaling, not greater than 1), length is needed and not positive, or a parameter of the
/// scaling is missing or out of its range.
HEED_API RotaryFrequencies rotary_frequencies(std::int64_t rotary_dim, double base = 10000,
                                              const RotaryScaling& scaling = {},
                                              std::optional<std::int64_t> length = std::nullopt);

}}  // namespace heed::v0
