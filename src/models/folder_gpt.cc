// GPT-2 and families that have layer norms as well. The defaults of missing members are those of
// the configuration classes of transformers 5.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "models/folder_families.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::string_view kWithoutEffectInGpt2[] = {
    // The context length in early files; n_positions is the one that counts.
    "n_ctx", "predict_special_tokens",
    // The head that summarises a text for classifiers.
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj"};

ModelConfig gpt2_config(ConfigFields& fields, std::string_view /*type*/) {
  constexpr std::string_view kScale = "heed scales scores by 1 / √head_dim";
  fields.expect("scale_attn_by_inverse_layer_idx", false, kScale);
  fields.expect("scale_attn_weights", true, kScale);
  fields.ignore(kWithoutEffectInGpt2);
  ModelConfig config{.family = Family::kGpt2, .norms = NormKind::kLayer, .biases = kAllBiases};
  config.num_layers = either_size(fields, "n_layer", "num_hidden_layers");
  config.num_heads = either_size(fields, "n_head", "num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = either_size(fields, "n_embd", "hidden_size");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  // Clamped, because four times an unchecked number from a file could overflow.
  config.intermediate_size =
      fields.integer_or("n_inner", 4 * std::clamp<std::int64_t>(config.hidden_size, 0, 1 << 20));
  const bool has_positions = fields.find("n_positions") || fields.find("max_position_embeddings");
  config.max_positions =
      has_positions ? either_size(fields, "n_positions", "max_position_embeddings") : 1024;
  config.norm_epsilon = fields.number_or("layer_norm_epsilon", 1e-5);
  config.activation = activation_named(fields, "activation_function", "gelu_new");
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", true);
  return config;
}

constexpr FolderFamily kGpts[] = {{"gpt2", gpt2_config}};

}  // namespace

std::span<const FolderFamily> gpt_families() { return kGpts; }

}}}  // namespace heed::v0::models
