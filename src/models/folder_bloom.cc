// BLOOM and Falcon, whose products for query, key and value are one. The defaults of missing
// members are those of the configuration classes of transformers 5.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "models/folder_families.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::string_view kSumAfterNorm = "what a part adds to is what its norm reads";

constexpr std::string_view kWithoutEffectInBloom[] = {
    // The same function, computed in another order, and how the model was trained.
    "attention_softmax_in_fp32",
    "bias_dropout_fusion",
    "masked_softmax_fusion",
    "offset_alibi",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "slow_but_exact"};

ModelConfig bloom_config(ConfigFields& fields, std::string_view /*type*/) {
  fields.expect("apply_residual_connection_post_layernorm", false, kSumAfterNorm);
  fields.ignore(kWithoutEffectInBloom);
  ModelConfig config{.family = Family::kBloom,
                     .norms = NormKind::kLayer,
                     .activation = Activation::kGeluTanh,
                     .biases = kAllBiases,
                     .has_alibi = true};
  config.num_layers = either_size(fields, "n_layer", "num_hidden_layers");
  config.num_heads = either_size(fields, "n_head", "num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = either_size(fields, "hidden_size", "n_embed");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = four_times(config.hidden_size);
  // Of the texts that the model was trained on; distances have no largest one.
  config.max_positions = fields.integer_or("seq_length", 2048);
  config.norm_epsilon = fields.number_or("layer_norm_epsilon", 1e-5);
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", true);
  return config;
}

// Falcon 7B has one key for all queries and one norm before both parts; Falcon 40B and 180B
// (new_decoder_architecture) have a few keys and a norm before each part, Falcon 2 11B one norm.
void read_parts(ConfigFields& fields, ModelConfig& config) {
  const bool is_new = fields.boolean_or("new_decoder_architecture", false);
  const bool is_multi_query = fields.boolean_or("multi_query", true);
  const std::int64_t kv_heads = fields.integer_or("num_kv_heads", config.num_heads);
  config.num_kv_heads = is_multi_query && !is_new ? 1 : kv_heads;
  const bool is_parallel = fields.boolean_or("parallel_attn", true);
  const std::int64_t norms = fields.integer_or("num_ln_in_parallel_attn", is_new ? 2 : 1);
  const bool is_known = is_new ? is_parallel && (norms == 1 || norms == 2)
                               : norms == 1 && (is_multi_query || kv_heads == config.num_heads);
  if (!is_known) {
    fields.json().fail(fmt::format(
        ": new_decoder_architecture is {}, parallel_attn {}, num_ln_in_parallel_attn {}, "
        "multi_query {} and num_kv_heads {}, which no Falcon is",
        is_new, is_parallel, norms, is_multi_query, kv_heads));
  }
  config.part_order = !is_parallel ? PartOrder::kInTurn
                      : norms == 2 ? PartOrder::kParallel
                                   : PartOrder::kParallelOneNorm;
}

ModelConfig falcon_config(ConfigFields& fields, std::string_view /*type*/) {
  fields.expect("alibi", false, "transformers rounds Falcon's distances to bfloat16");
  fields.expect("apply_residual_connection_post_layernorm", false, kSumAfterNorm);
  ModelConfig config{.family = Family::kFalcon, .norms = NormKind::kLayer};
  config.num_layers = fields.integer("num_hidden_layers");
  config.num_heads = fields.integer("num_attention_heads");
  config.hidden_size = either_size(fields, "hidden_size", "n_embed");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  read_parts(fields, config);
  config.intermediate_size = fields.integer_or("ffn_hidden_size", four_times(config.hidden_size));
  config.max_positions = fields.integer_or("max_position_embeddings", 2048);
  config.norm_epsilon = fields.number_or("layer_norm_epsilon", 1e-5);
  config.activation = activation_named(fields, "activation", "gelu");
  const bool has_biases = fields.boolean_or("bias", false);
  config.biases = {
      .inputs = has_biases, .output = has_biases, .feed_forward = has_biases, .norms = true};
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", true);
  config.rotaries = {read_rotary(fields, config)};
  return config;
}

constexpr FolderFamily kFused[] = {{"bloom", bloom_config}, {"falcon", falcon_config}};

}  // namespace

std::span<const FolderFamily> fused_families() { return kFused; }

}}}  // namespace heed::v0::models
