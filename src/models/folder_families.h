// Readers of config.json, one for each group of families that are alike, and what they share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "heed/models/config.h"
#include "models/config_reading.h"

namespace heed { inline namespace v0 { namespace models {

// A model_type, and the reader of its configuration.
struct FolderFamily {
  std::string_view type;
  ModelConfig (*read)(ConfigFields& fields, std::string_view type);
};
std::span<const FolderFamily> encoder_families();
std::span<const FolderFamily> gpt_families();
std::span<const FolderFamily> llama_like_families();
std::span<const FolderFamily> gemma_families();
std::span<const FolderFamily> encoder_decoder_families();
std::span<const FolderFamily> fused_families();

// A model whose layers have all biases; the head has none.
inline constexpr Biases kAllBiases{
    .inputs = true, .output = true, .feed_forward = true, .norms = true};

// Reads a size that has two possible names.
std::int64_t either_size(ConfigFields& fields, const char* key, const char* other);

Activation activation_named(ConfigFields& fields, const char* key, const char* otherwise);

// The default size of feed-forward layers. Clamped, because four times an unchecked number from a
// file could overflow.
std::int64_t four_times(std::int64_t size);

// dim / num_heads, the default of configurations without a head size.
std::int64_t divided(const ConfigFields& fields, std::int64_t dim, std::int64_t num_heads);

// Layers without a window, with the only rotary embedding if there is one.
std::vector<LayerConfig> equal_layers(const ModelConfig& config);

// For each layer of layer_types, true if it is sliding_attention and false if full_attention;
// nullopt without this member.
std::optional<std::vector<bool>> sliding_layers(ConfigFields& fields, const ModelConfig& config);

// The size for a layer whose type is sliding_attention. Throws FormatError if there is none.
std::int64_t needed_window(const ConfigFields& fields, std::optional<std::int64_t> size);

}}}  // namespace heed::v0::models
