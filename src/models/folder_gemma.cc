// Gemma 2 and the text part of Gemma 3. The defaults of missing members are those of the
// configuration classes of transformers 5.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "models/folder_families.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// config.rotaries of Gemma 3.
constexpr std::size_t kFull = 0;
constexpr std::size_t kSliding = 1;

std::optional<double> optional_number(ConfigFields& fields, const char* key, double otherwise) {
  if (const auto found = fields.find(key)) return found->number();
  if (fields.has(key) || otherwise == 0) return std::nullopt;
  return otherwise;
}

// Gemma 2 has a window in every second layer, Gemma 3 in all but every sixth, unless layer_types
// says otherwise.
void read_windows(ConfigFields& fields, ModelConfig& config) {
  std::optional<std::int64_t> size;
  if (const auto found = fields.find("sliding_window")) size = found->integer();
  if (!fields.has("sliding_window")) size = 4096;
  const bool is_third = config.family == Family::kGemma3;
  const std::int64_t period = is_third ? fields.integer_or("sliding_window_pattern", 6) : 2;
  if (period < 1) {
    fields.json().fail(fmt::format(": sliding_window_pattern is {}, expected at least 1", period));
  }
  const auto sliding = sliding_layers(fields, config);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const bool is_sliding =
        sliding ? (*sliding)[i] : (static_cast<std::int64_t>(i) + 1) % period != 0;
    if (!is_sliding) continue;
    config.layers[i].window = needed_window(fields, size);
    if (is_third) config.layers[i].rotary = kSliding;
  }
}

ModelConfig gemma_config(ConfigFields& fields, std::string_view type) {
  const bool is_second = type == "gemma2";
  fields.expect("use_bidirectional_attention", false, "heed's Gemma sees no later tokens");
  ModelConfig config{.family = is_second ? Family::kGemma2 : Family::kGemma3,
                     .head_norms = is_second ? HeadNorms::kNone : HeadNorms::kShared};
  config.num_layers = fields.integer("num_hidden_layers");
  config.num_heads = fields.integer("num_attention_heads");
  config.num_kv_heads = fields.integer_or("num_key_value_heads", 4);
  config.hidden_size = fields.integer("hidden_size");
  config.head_dim = fields.integer_or("head_dim", 256);
  config.intermediate_size = fields.integer("intermediate_size");
  config.max_positions = fields.integer_or("max_position_embeddings", is_second ? 8192 : 131072);
  config.norm_epsilon = fields.number_or("rms_norm_eps", 1e-6);
  config.activation = activation_named(fields, "hidden_activation", "gelu_pytorch_tanh");
  const bool has_biases = fields.boolean_or("attention_bias", false);
  config.biases = {.inputs = has_biases, .output = has_biases};
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", true);
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  config.attention_scale = 1 / std::sqrt(fields.number_or("query_pre_attn_scalar", 256));
  config.logit_softcap = optional_number(fields, "final_logit_softcapping", is_second ? 30 : 0);
  if (is_second) {
    config.score_softcap = optional_number(fields, "attn_logit_softcapping", 50);
    config.rotaries = {read_rotary(fields, config)};
  } else {
    fields.expect_nothing("attn_logit_softcapping", "Gemma 3 has no softcap of scores");
    config.rotaries.resize(2);
    config.rotaries[kFull] = read_rotary_of(fields, config, "full_attention", {.base = 1000000});
    config.rotaries[kSliding] =
        read_rotary_of(fields, config, "sliding_attention", {.base_key = "rope_local_base_freq"});
  }
  config.layers = equal_layers(config);
  read_windows(fields, config);
  // Early files have the activation under this name too, which transformers does not read.
  fields.find("hidden_act");
  if (!is_second) fields.find("_sliding_window_pattern");
  return config;
}

constexpr FolderFamily kGemmas[] = {{"gemma2", gemma_config}, {"gemma3_text", gemma_config}};

}  // namespace

std::span<const FolderFamily> gemma_families() { return kGemmas; }

}}}  // namespace heed::v0::models
