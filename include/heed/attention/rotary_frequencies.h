/// The frequencies of rotary embeddings, and how a model's frequencies are scaled for sequences
/// longer than those it was trained on.
///
/// Below, d is rotary_dim, i = 0 … d/2 − 1 a pair, and f_i = 1 / base^(2i / d) its frequency
/// without scaling, in radians per position. Parameters that are 0 by default have no usual value
/// and must be given; a model's configuration has them.
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

/// f_i of a greater base, for lengths above original_max_len:
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

/// Fast pairs keep their frequency, slow pairs are interpolated, and those between are mixed:
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
  bool truncate = true;  ///< true if c(n) is rounded, as above; false for gpt-oss
  std::optional<double> attention_factor = std::nullopt;  ///< replaces the equation's
  std::optional<double> mscale = std::nullopt;
  std::optional<double> mscale_all_dim = std::nullopt;
};

/// A divisor for each pair, found by a search: f_i / long_factor[i] where length is greater than
/// original_max_len, f_i / short_factor[i] otherwise. The attention factor is in both cases
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
  std::optional<double> attention_factor = std::nullopt;  ///< replaces the equation's
};

/// YaRN's mixture, but depending on the number of turns of a pair within original_max_len:
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

/// The scaling of frequencies; {}: none.
using RotaryScaling = std::variant<std::monostate, LinearScaling, DynamicNtkScaling, YarnScaling,
                                   LongRopeScaling, Llama3Scaling>;

/// The result of rotary_frequencies().
struct RotaryFrequencies {
  Tensor<double> inv_freq;      ///< radians per position, [rotary_dim / 2]
  double attention_factor = 1;  ///< factor of every cosine and sine; scores get its square
};

/// The frequencies of a rotary embedding, computed in double.
/// @param rotary_dim the number of rotated dimensions of a head: even
/// @param length the length of the whole sequence, including its part in a cache; required for
/// DynamicNtkScaling and LongRopeScaling, which depend on it, and ignored otherwise. All tokens of
/// a sequence need the frequencies of one length: keys that were rotated are not rotated again.
/// @throws InvalidArgument when rotary_dim is negative or odd, base is not positive (for
/// YarnScaling, not greater than 1), length is needed and not positive, or a parameter of the
/// scaling is missing or out of its range.
HEED_API RotaryFrequencies rotary_frequencies(std::int64_t rotary_dim, double base = 10000,
                                              const RotaryScaling& scaling = {},
                                              std::optional<std::int64_t> length = std::nullopt);

}}  // namespace heed::v0
