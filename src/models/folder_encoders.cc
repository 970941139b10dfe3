// BERT and its relatives but ModernBERT. The defaults of missing members are those of the
// configuration classes of transformers 5.
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
    // The summary of ELECTRA's classifiers.
    "summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj",
    "classifier_dropout_prob",
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

// The positions of RoBERTa: the rows of the table up to the padding token's are of other use.
void count_from_padding(ConfigFields& fields, std::int64_t padding, ModelConfig& config) {
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

// The members that most of them have.
ModelConfig bert_like_config(ConfigFields& fields, Family family) {
  fields.expect("position_embedding_type", "absolute", "heed has no other positions of BERT");
  ModelConfig config = encoder_config(fields, family);
  config.num_layers = fields.integer("num_hidden_layers");
  config.num_heads = fields.integer("num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = fields.integer("hidden_size");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer("intermediate_size");
  config.max_positions = fields.integer("max_position_embeddings");
  config.norm_epsilon = fields.number_or("layer_norm_eps", config.norm_epsilon);
  config.activation = activation_named(fields, "hidden_act", "gelu");
  return config;
}

ModelConfig bert_config(ConfigFields& fields, std::string_view /*type*/) {
  ModelConfig config = bert_like_config(fields, Family::kBert);
  config.num_token_types = fields.integer_or("type_vocab_size", 2);
  return config;
}

// RoBERTa and XLM-RoBERTa.
ModelConfig roberta_config(ConfigFields& fields, std::string_view /*type*/) {
  ModelConfig config = bert_like_config(fields, Family::kRoberta);
  config.num_token_types = fields.integer_or("type_vocab_size", 2);
  count_from_padding(fields, fields.has("pad_token_id") ? fields.integer("pad_token_id") : 1,
                     config);
  return config;
}

ModelConfig mpnet_config(ConfigFields& fields, std::string_view /*type*/) {
  // transformers has these numbers, whatever pad_token_id and the member below are.
  constexpr std::int64_t kPadding = 1;
  constexpr std::int64_t kBuckets = 32;
  ModelConfig config = bert_like_config(fields, Family::kMpnet);
  fields.expect("relative_attention_num_buckets", kBuckets, "MPNet has so many distances");
  config.position_buckets = {.count = kBuckets};
  count_from_padding(fields, kPadding, config);
  return config;
}

ModelConfig electra_config(ConfigFields& fields, std::string_view /*type*/) {
  ModelConfig config = bert_like_config(fields, Family::kElectra);
  config.num_token_types = fields.integer_or("type_vocab_size", 2);
  const std::int64_t width = fields.integer_or("embedding_size", 128);
  if (width != config.hidden_size) config.embedding_size = width;
  return config;
}

ModelConfig albert_config(ConfigFields& fields, std::string_view /*type*/) {
  constexpr std::string_view kWhy = "all layers of heed's ALBERT share their weights";
  ModelConfig config = bert_like_config(fields, Family::kAlbert);
  config.num_token_types = fields.integer_or("type_vocab_size", 2);
  config.embedding_size = fields.integer_or("embedding_size", 128);
  config.activation = activation_named(fields, "hidden_act", "gelu_new");
  fields.expect("num_hidden_groups", std::int64_t{1}, kWhy);
  fields.expect("inner_group_num", std::int64_t{1}, kWhy);
  config.shares_layers = true;
  // Members of early files, which transformers does not read.
  for (const char* key :
       {"down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"}) {
    fields.find(key);
  }
  return config;
}

ModelConfig nomic_bert_config(ConfigFields& fields, std::string_view /*type*/) {
  ModelConfig config = bert_like_config(fields, Family::kNomicBert);
  config.num_token_types = fields.integer_or("type_vocab_size", 2);
  config.head_dim = fields.integer_or("head_dim", config.head_dim);
  config.activation = activation_named(fields, "hidden_act", "silu");
  config.biases = {.norms = true};
  config.rotaries = {read_rotary(fields, config, {.base = 1000})};
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

// The layers of config.rotaries.
constexpr std::size_t kGlobal = 0;
constexpr std::size_t kLocal = 1;

ModelConfig modernbert_config(ConfigFields& fields, std::string_view /*type*/) {
  ModelConfig config = encoder_config(fields, Family::kModernBert);
  config.num_layers = fields.integer_or("num_hidden_layers", 22);
  config.num_heads = fields.integer_or("num_attention_heads", 12);
  config.num_kv_heads = config.num_heads;
  config.hidden_size = fields.integer_or("hidden_size", 768);
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer_or("intermediate_size", 1152);
  config.max_positions = fields.integer_or("max_position_embeddings", 8192);
  config.norm_epsilon = fields.number_or("norm_eps", 1e-5);
  config.activation = activation_named(fields, "hidden_activation", "gelu");
  const bool has_biases = fields.boolean_or("attention_bias", false);
  config.biases = {.inputs = has_biases,
                   .output = has_biases,
                   .feed_forward = fields.boolean_or("mlp_bias", false),
                   .norms = fields.boolean_or("norm_bias", false)};
  fields.expect_nothing("rope_scaling", "heed reads the rotary positions of layer types apart");
  config.rotaries.resize(2);
  config.rotaries[kGlobal] = read_rotary_of(fields, config, "full_attention",
                                            {.base = 160000, .base_key = "global_rope_theta"});
  config.rotaries[kLocal] = read_rotary_of(fields, config, "sliding_attention",
                                           {.base = 10000, .base_key = "local_rope_theta"});
  config.layers = equal_layers(config);
  const std::int64_t width = fields.integer_or("local_attention", 128);
  const std::int64_t period = fields.integer_or("global_attn_every_n_layers", 3);
  if (width < 0 || period < 1) {
    fields.json().fail(fmt::format(
        ": local_attention is {} and global_attn_every_n_layers {}, expected 0 or more, and 1 or "
        "more",
        width, period));
  }
  const auto sliding = sliding_layers(fields, config);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const bool is_local = sliding ? (*sliding)[i] : static_cast<std::int64_t>(i) % period != 0;
    if (is_local) config.layers[i] = {.window = width / 2 + 1, .rotary = kLocal};
  }
  if (!config.layers.empty()) config.layers.front().has_attention_norm = false;
  // Members of the heads, of training and of other implementations.
  constexpr std::string_view kOthers[] = {"classifier_activation",    "classifier_bias",
                                          "classifier_pooling",       "decoder_bias",
                                          "deterministic_flash_attn", "initializer_cutoff_factor",
                                          "layer_norm_eps",           "mlp_dropout",
                                          "position_embedding_type",  "reference_compile",
                                          "repad_logits_with_grad",   "sparse_pred_ignore_index",
                                          "sparse_prediction"};
  fields.ignore(kOthers);
  return config;
}

constexpr FolderFamily kEncoders[] = {{"bert", bert_config},
                                      {"roberta", roberta_config},
                                      {"xlm-roberta", roberta_config},
                                      {"distilbert", distilbert_config},
                                      {"mpnet", mpnet_config},
                                      {"electra", electra_config},
                                      {"albert", albert_config},
                                      {"nomic_bert", nomic_bert_config},
                                      {"modernbert", modernbert_config}};

}  // namespace

std::span<const FolderFamily> encoder_families() { return kEncoders; }

}}}  // namespace heed::v0::models
