/// The sizes of a small causal model that heed trains, and how it knows where a token stands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/attention_config.h"

namespace heed { inline namespace v0 { namespace models {

/// What messages call a setting.
enum class SettingNames {
  kMembers,  ///< as the member of the struct: "d_model"
  kOptions,  ///< as the option of the command: "--d-model"
};

/// The sizes of a CausalTransformer, and what else it is made of.
struct CausalConfig {
  std::int64_t vocab_size = 0;
  std::int64_t context = 64;  ///< tokens in a sequence that it learns from
  std::int64_t layers = 2;    ///< blocks of attention and feed-forward
  std::int64_t d_model = 64;  ///< numbers per token; a multiple of `heads`
  std::int64_t heads = 4;
  std::string positions = "sinusoidal";  ///< one of position_names()
  /// Which keys are visible, of those not later, as parse_mask() reads it: "streaming(4, 32)".
  std::string mask = "none";
};

/// @throws InvalidArgument naming the setting when numbers are out of range or do not fit together,
/// there are no such positions, or the mask does not fit sequences of any length.
HEED_API void check_config(const CausalConfig& config, SettingNames names = SettingNames::kMembers);

/// What CausalConfig::positions may be: none; sinusoidal and learned, vectors added to the tokens';
/// rotary, alibi, t5, shaw and clip, part of each layer of attention.
HEED_API const std::vector<std::string>& position_names();

/// The attention layers of a model of this configuration, whose positions end at `longest`.
HEED_API nn::AttentionConfig attention_config(const CausalConfig& config, std::int64_t longest);

}}}  // namespace heed::v0::models
