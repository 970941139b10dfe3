// GPT-2, GPT-Neo, GPT-J and OPT. The defaults of missing members are those of
// the configuration classes of transformers 5.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/folder_families.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::string_view kWithoutEffectInGpts[] = {
    // The context length in early files; n_positions is the one that counts.
    "n_ctx", "predict_special_tokens",
    // The head that summarises a text for classifiers.
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
    "summary_use_proj",
    // Training.
    "embed_dropout", "resid_dropout"};

constexpr std::string_view kWithoutEffectInOpt[] = {"activation_dropout", "dropout", "init_std",
                                                    "layerdrop"};

// The sizes of GPT-2 and GPT-J.
ModelConfig gpt_sizes(ConfigFields& fields, Family family) {
  ModelConfig config{.family = family, .norms = NormKind::kLayer, .biases = kAllBiases};
  config.num_layers = either_size(fields, "n_layer", "num_hidden_layers");
  config.num_heads = either_size(fields, "n_head", "num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = either_size(fields, "n_embd", "hidden_size");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer_or("n_inner", four_times(config.hidden_size));
  const bool has_positions = fields.find("n_positions") || fields.find("max_position_embeddings");
  config.max_positions = has_positions
                             ? either_size(fields, "n_positions", "max_position_embeddings")
                             : (family == Family::kGpt2 ? 1024 : 2048);
  config.norm_epsilon = fields.number_or("layer_norm_epsilon", 1e-5);
  config.activation = activation_named(fields, "activation_function", "gelu_new");
  return config;
}

ModelConfig gpt2_config(ConfigFields& fields, std::string_view /*type*/) {
  constexpr std::string_view kScale = "heed scales scores by 1 / √head_dim";
  fields.expect("scale_attn_by_inverse_layer_idx", false, kScale);
  fields.expect("scale_attn_weights", true, kScale);
  fields.ignore(kWithoutEffectInGpts);
  ModelConfig config = gpt_sizes(fields, Family::kGpt2);
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", true);
  return config;
}

// The types of layers, "global" or "local": attention_layers lists them; attention_types has lists
// of types, each with the number of times that it is repeated.
std::vector<bool> local_layers(ConfigFields& fields, const ModelConfig& config) {
  std::vector<bool> local;
  const auto add = [&](const io::JsonPart& type) {
    local.push_back(type.string() == "local");
    if (!local.back() && type.string() != "global") {
      type.fail(fmt::format(" is \"{}\", expected global or local", type.string()));
    }
    if (std::ssize(local) > config.num_layers) type.fail(" is one more than there are layers");
  };
  const auto types = fields.find("attention_types");
  if (const auto layers = fields.find("attention_layers")) {
    for (const io::JsonPart& type : layers->items()) add(type);
  } else if (types) {
    for (const io::JsonPart& repeated : types->items()) {
      const std::vector<io::JsonPart> parts = repeated.items();
      if (parts.size() != 2) repeated.fail(" has other than 2 items, expected types and a number");
      for (std::int64_t i = 0; i < parts[1].integer() && !parts[0].items().empty(); ++i) {
        for (const io::JsonPart& type : parts[0].items()) add(type);
      }
    }
  } else {
    for (int i = 0; i < 24; ++i) local.push_back(i % 2 == 1);
  }
  if (std::ssize(local) != config.num_layers) {
    fields.json().fail(fmt::format(
        ": attention_layers or attention_types has {} types, expected one for each of {} layers",
        local.size(), config.num_layers));
  }
  return local;
}

ModelConfig gpt_neo_config(ConfigFields& fields, std::string_view /*type*/) {
  fields.ignore(kWithoutEffectInGpts);
  ModelConfig config{.family = Family::kGptNeo,
                     .norms = NormKind::kLayer,
                     .biases = {.output = true, .feed_forward = true, .norms = true},
                     .attention_scale = 1};
  config.num_layers = either_size(fields, "num_layers", "num_hidden_layers");
  config.num_heads = either_size(fields, "num_heads", "num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = fields.integer("hidden_size");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer_or("intermediate_size", four_times(config.hidden_size));
  config.max_positions = fields.integer_or("max_position_embeddings", 2048);
  config.norm_epsilon = fields.number_or("layer_norm_epsilon", 1e-5);
  config.activation = activation_named(fields, "activation_function", "gelu_new");
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", true);
  config.layers = equal_layers(config);
  const std::int64_t window = fields.integer_or("window_size", 256);
  const std::vector<bool> local = local_layers(fields, config);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (local[i]) config.layers[i].window = window;
  }
  return config;
}

ModelConfig gptj_config(ConfigFields& fields, std::string_view /*type*/) {
  fields.ignore(kWithoutEffectInGpts);
  constexpr std::string_view kWhole = "heed's GPT-J scales scores by 1 / √head_dim";
  fields.expect("scale_attn_weights", true, kWhole);
  ModelConfig config = gpt_sizes(fields, Family::kGptJ);
  config.part_order = PartOrder::kParallelOneNorm;
  config.biases = {.feed_forward = true, .norms = true, .head = true};
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", false);
  config.rotaries = {{.rotary_dim = fields.has("rotary_dim") ? fields.integer("rotary_dim") : 64,
                      .pairing = RotaryPairing::kNeighbours}};
  fields.expect("rotary", true, "heed's GPT-J turns queries and keys");
  return config;
}

ModelConfig opt_config(ConfigFields& fields, std::string_view /*type*/) {
  fields.ignore(kWithoutEffectInOpt);
  fields.expect("do_layer_norm_before", true, "heed's OPT has norms before each part");
  fields.expect("_remove_final_layer_norm", false, "heed's OPT has a norm at the end");
  fields.expect("layer_norm_elementwise_affine", true, "heed's norms have weights");
  ModelConfig config{.family = Family::kOpt, .first_position = 2, .norms = NormKind::kLayer};
  config.num_layers = fields.integer("num_hidden_layers");
  config.num_heads = fields.integer("num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = fields.integer("hidden_size");
  fields.expect("word_embed_proj_dim", config.hidden_size,
                "heed's OPT has embeddings as wide as its layers");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer("ffn_dim");
  config.max_positions = fields.integer_or("max_position_embeddings", 2048);
  config.activation = activation_named(fields, "activation_function", "relu");
  const bool has_biases = fields.boolean_or("enable_bias", true);
  config.biases = {
      .inputs = has_biases, .output = has_biases, .feed_forward = has_biases, .norms = true};
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", true);
  return config;
}

constexpr FolderFamily kGpts[] = {
    {"gpt2", gpt2_config}, {"gpt_neo", gpt_neo_config}, {"gptj", gptj_config}, {"opt", opt_config}};

}  // namespace

std::span<const FolderFamily> gpt_families() { return kGpts; }

}}}  // namespace heed::v0::models
