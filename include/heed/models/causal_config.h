/// The configuration of a small causal model that heed trains.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/attention_config.h"

namespace heed { inline namespace v0 { namespace models {

/// How error messages name a setting.
enum class SettingNames {
  kMembers,  ///< by the member of the struct: "d_model"
  kOptions,  ///< by the option of the command: "--d-model"
};

/// The sizes and parts of a CausalTransformer.
struct CausalConfig {
  std::int64_t vocab_size = 0;
  std::int64_t context = 64;  ///< tokens in a training sequence
  std::int64_t layers = 2;    ///< blocks of attention and feed-forward
  std::int64_t d_model = 64;  ///< width of a token's vector; a multiple of `heads`
  std::int64_t heads = 4;
  std::string positions = "sinusoidal";  ///< one of position_names()
  /// The keys that are visible, of those not later, as text for parse_mask(): "streaming(4, 32)".
  std::string mask = "none";
};

/// @throws InvalidArgument naming the setting when numbers are out of range or do not fit together,
/// the positions are unknown, or the mask does not fit sequences of any length.
HEED_API void check_config(const CausalConfig& config, SettingNames names = SettingNames::kMembers);

/// The values of CausalConfig::positions: none; sinusoidal and learned, vectors that are added to
/// those of tokens; rotary, alibi, t5, shaw and clip, which are part of each attention layer.
HEED_API const std::vector<std::string>& position_names();

/// The attention layers of a model of this configuration, for positions up to `longest`.
HEED_API nn::AttentionConfig attention_config(const CausalConfig& config, std::int64_t longest);

}}}  // namespace heed::v0::models
