// BERT, RoBERTa and DistilBERT. The defaults of missing members are those of the configuration
// classes of transformers 5.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "models/folder_families.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::string_view kWithoutEffectInBert[] = {
    // The pooler, whose vector heed does not use.
    "directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
    "pooler_size_per_head", "pooler_type",
    // Initial values of DistilBERT's positions, and what is dropped in training.
    "sinusoidal_pos_embds", "dropout", "qa_dropout", "seq_classif_dropout",
    // No weights are tied to the token embeddings: heed has no head of BERT.
    "tie_word_embeddings"};

// What these families have in common.
ModelConfig encoder_config(ConfigFields& fields, Family family) {
  constexpr std::string_view kWhy = "heed has this family as an encoder";
  fields.expect("is_decoder", false, kWhy);
  fields.expect("is_causal", false, kWhy);
  fields.ignore(kWithoutEffectInBert);
  return {.family = family,
          .sees_later_tokens = true,
          .norms = NormKind::kLayer,
          .norm_epsilon = 1e-12,
          .biases = kAllBiases};
}

// BERT, RoBERTa and XLM-RoBERTa.
ModelConfig bert_config(ConfigFields& fields, std::string_view type) {
  fields.expect("position_embedding_type", "absolute", "heed has no other positions of BERT");
  ModelConfig config = encoder_config(fields, type == "bert" ? Family::kBert : Family::kRoberta);
  config.num_layers = fields.integer("num_hidden_layers");
  config.num_heads = fields.integer("num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = fields.integer("hidden_size");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer("intermediate_size");
  config.max_positions = fields.integer("max_position_embeddings");
  if (config.family == Family::kRoberta) {
    const std::int64_t padding = fields.has("pad_token_id") ? fields.integer("pad_token_id") : 1;
    if (padding < 0 || padding >= config.max_positions) {
      fields.json().fail(fmt::format(
          ": pad_token_id is {}, expected 0 or more, and less than max_position_embeddings, {}: "
          "positions are counted from it",
          padding, config.max_positions));
    }
    config.padding_id = padding;
    config.first_position = padding + 1;
    config.max_positions -= config.first_position;
  }
  config.num_token_types = fields.integer_or("type_vocab_size", 2);
  config.norm_epsilon = fields.number_or("layer_norm_eps", config.norm_epsilon);
  config.activation = activation_named(fields, "hidden_act", "gelu");
  return config;
}

ModelConfig distilbert_config(ConfigFields& fields, std::string_view /*type*/) {
  ModelConfig config = encoder_config(fields, Family::kDistilBert);
  config.num_layers = either_size(fields, "n_layers", "num_hidden_layers");
  config.num_heads = either_size(fields, "n_heads", "num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = either_size(fields, "dim", "hidden_size");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer("hidden_dim");
  config.max_positions = fields.integer_or("max_position_embeddings", 512);
  config.activation = activation_named(fields, "activation", "gelu");
  return config;
}

constexpr FolderFamily kEncoders[] = {{"bert", bert_config},
                                      {"roberta", bert_config},
                                      {"xlm-roberta", bert_config},
                                      {"distilbert", distilbert_config}};

}  // namespace

std::span<const FolderFamily> encoder_families() { return kEncoders; }

}}}  // namespace heed::v0::models
