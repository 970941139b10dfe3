// T5, BART and Marian. The defaults of missing members are those of the configuration classes of
// transformers 5.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "models/folder_families.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::string_view kWithoutEffectInThem[] = {
    // Dropped in training, and initial values.
    "activation_dropout", "classif_dropout", "decoder_layerdrop", "dropout", "dropout_rate",
    "encoder_layerdrop", "init_std", "initializer_factor",
    // Earlier versions' notes of what the names of sizes mean, and positions of T5, which has none.
    "add_bias_logits", "add_final_layer_norm", "classifier_dropout", "n_positions", "output_past",
    "normalize_before", "normalize_embedding", "static_position_embeddings", "extra_pos_embeddings",
    "gradient_checkpointing"};

// T5 has no table of positions.
constexpr std::int64_t kAnyPositions = std::int64_t{1} << 24;

// The most rows of a table of sines.
constexpr std::int64_t kMostComputedPositions = std::int64_t{1} << 17;

// A decoder that reads what `encoder` wrote.
ModelConfig decoder_of(ConfigFields& fields, ModelConfig encoder, ModelConfig decoder) {
  constexpr std::string_view kWhy = "heed has this family as an encoder and a decoder";
  fields.expect("is_encoder_decoder", true, kWhy);
  fields.expect("is_decoder", false, kWhy);
  fields.ignore(kWithoutEffectInThem);
  encoder.sees_later_tokens = true;
  for (ModelConfig* config : {&encoder, &decoder}) {
    config->vocab_size = fields.integer("vocab_size");
    config->layers = equal_layers(*config);
  }
  decoder.encoder = std::make_shared<const ModelConfig>(std::move(encoder));
  return decoder;
}

// Feed-forward layers of T5 are "relu", "gated-gelu" and others; its GELU is the tanh's.
struct T5FeedForward {
  bool is_gated;
  Activation activation;
};

T5FeedForward t5_feed_forward(ConfigFields& fields) {
  const std::string name = fields.string_or("feed_forward_proj", "relu");
  for (const auto& [known, kind] :
       {std::pair<std::string_view, T5FeedForward>{"relu", {false, Activation::kRelu}},
        {"gelu", {false, Activation::kGelu}},
        {"gated-relu", {true, Activation::kRelu}},
        {"gated-gelu", {true, Activation::kGeluTanh}},
        {"gated-silu", {true, Activation::kSilu}}}) {
    if (known != name) continue;
    T5FeedForward result = kind;
    // These follow from the name, unless a file says otherwise.
    if (fields.find("dense_act_fn")) {
      result.activation = activation_named(fields, "dense_act_fn", "");
    }
    result.is_gated = fields.boolean_or("is_gated_act", kind.is_gated);
    return result;
  }
  fields.json().fail(fmt::format(
      ": feed_forward_proj is \"{}\", expected relu, gelu, gated-relu, gated-gelu or gated-silu",
      name));
}

ModelConfig t5_config(ConfigFields& fields, std::string_view /*type*/) {
  const T5FeedForward feed_forward = t5_feed_forward(fields);
  ModelConfig config{.family = feed_forward.is_gated ? Family::kT5Gated : Family::kT5};
  config.num_layers = either_size(fields, "num_layers", "num_hidden_layers");
  config.num_heads = either_size(fields, "num_heads", "num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = either_size(fields, "d_model", "hidden_size");
  config.head_dim = either_size(fields, "d_kv", "head_dim");
  config.intermediate_size = fields.integer("d_ff");
  config.max_positions = kAnyPositions;
  config.norm_epsilon = fields.number_or("layer_norm_epsilon", 1e-6);
  config.activation = feed_forward.activation;
  config.attention_scale = 1;
  config.position_buckets = {
      .count = fields.integer_or("relative_attention_num_buckets", 32),
      .max_distance = fields.integer_or("relative_attention_max_distance", 128)};
  ModelConfig decoder = config;
  decoder.num_layers = fields.integer_or("num_decoder_layers", config.num_layers);
  decoder.start_id = fields.integer_or("decoder_start_token_id", 0);
  const bool is_tied = fields.boolean_or("tie_word_embeddings", true);
  const bool is_scaled = fields.boolean_or("scale_decoder_outputs", is_tied);
  decoder.logit_scale = is_scaled && config.hidden_size > 0
                            ? 1 / std::sqrt(static_cast<double>(config.hidden_size))
                            : 1;
  return decoder_of(fields, std::move(config), std::move(decoder));
}

// One half of BART or Marian; `half` is "encoder" or "decoder".
ModelConfig bart_half(ConfigFields& fields, Family family, const std::string& half) {
  ModelConfig config{.family = family, .norms = NormKind::kLayer, .biases = kAllBiases};
  config.num_layers = fields.integer(half + "_layers");
  config.num_heads = fields.integer(half + "_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = fields.integer("d_model");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer(half + "_ffn_dim");
  config.max_positions = fields.integer_or("max_position_embeddings", 1024);
  config.activation = activation_named(fields, "activation_function", "gelu");
  if (fields.boolean_or("scale_embedding", false) && config.hidden_size > 0) {
    config.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  }
  if (family == Family::kBart) config.first_position = 2;
  if (family == Family::kMarian) {
    if (config.hidden_size % 2 != 0) {
      fields.json().fail(
          fmt::format(": d_model is {}, expected an even number: half of it are "
                      "sines of positions, the other half cosines",
                      config.hidden_size));
    }
    if (config.max_positions > kMostComputedPositions) {
      fields.json().fail(
          fmt::format(": max_position_embeddings is {}, expected at most {}: a table "
                      "of so many positions is computed",
                      config.max_positions, kMostComputedPositions));
    }
    config.has_sinusoidal_positions = true;
  }
  return config;
}

ModelConfig bart_config(ConfigFields& fields, std::string_view type) {
  const Family family = type == "bart" ? Family::kBart : Family::kMarian;
  ModelConfig encoder = bart_half(fields, family, "encoder");
  ModelConfig decoder = bart_half(fields, family, "decoder");
  decoder.start_id =
      fields.integer_or("decoder_start_token_id", family == Family::kBart ? 2 : 58100);
  decoder.has_tied_head = fields.boolean_or("tie_word_embeddings", true);
  if (const auto layers = fields.find("num_hidden_layers")) {
    fields.expect("num_hidden_layers", encoder.num_layers, "encoder_layers says so");
  }
  constexpr std::string_view kShared = "heed has one table of embeddings for both";
  fields.expect("share_encoder_decoder_embeddings", true, kShared);
  if (fields.find("decoder_vocab_size")) {
    fields.expect("decoder_vocab_size", fields.integer("vocab_size"), kShared);
  }
  return decoder_of(fields, std::move(encoder), std::move(decoder));
}

constexpr FolderFamily kEncoderDecoders[] = {
    {"t5", t5_config}, {"bart", bart_config}, {"marian", bart_config}};

}  // namespace

std::span<const FolderFamily> encoder_decoder_families() { return kEncoderDecoders; }

}}}  // namespace heed::v0::models
