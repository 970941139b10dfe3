// Configurations of folders in the format of transformers. The defaults of missing members are
// those of the configuration classes of transformers 5.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/models/config.h"
#include "models/config_reading.h"
#include "models/folder_families.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// Reads a size that has two possible names.
std::int64_t either_size(ConfigFields& fields, const char* key, const char* other) {
  const auto second = fields.find(other);
  if (!second) return fields.integer(key);
  const std::int64_t size = second->integer();
  fields.expect(key, size, fmt::format("{} says so, which is the same", other));
  return size;
}

constexpr Biases kAllBiases{.inputs = true, .output = true, .feed_forward = true};

// BERT, RoBERTa and XLM-RoBERTa.
ModelConfig bert_config(ConfigFields& fields, Family family) {
  constexpr std::string_view kWhy = "heed has this family as an encoder";
  fields.expect("is_decoder", false, kWhy);
  fields.expect("is_causal", false, kWhy);
  fields.expect("position_embedding_type", "absolute", "heed has no other positions of BERT");
  ModelConfig config{.family = family};
  config.num_layers = fields.integer("num_hidden_layers");
  config.num_heads = fields.integer("num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = fields.integer("hidden_size");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer("intermediate_size");
  config.max_positions = fields.integer("max_position_embeddings");
  if (family == Family::kRoberta) {
    const std::int64_t padding = fields.has("pad_token_id") ? fields.integer("pad_token_id") : 1;
    if (padding < 0 || padding >= config.max_positions) {
      fields.json().fail(fmt::format(
          ": pad_token_id is {}, expected 0 or more, and less than max_position_embeddings, {}: "
          "positions are counted from it",
          padding, config.max_positions));
    }
    config.padding_id = padding;
    config.max_positions -= padding + 1;
  }
  config.num_token_types = fields.integer_or("type_vocab_size", 2);
  config.norm_epsilon = fields.number_or("layer_norm_eps", 1e-12);
  config.activation = activation_named(fields, "hidden_act", "gelu");
  config.biases = kAllBiases;
  return config;
}

ModelConfig distilbert_config(ConfigFields& fields) {
  constexpr std::string_view kWhy = "heed has this family as an encoder";
  fields.expect("is_decoder", false, kWhy);
  fields.expect("is_causal", false, kWhy);
  ModelConfig config{.family = Family::kDistilBert};
  config.num_layers = either_size(fields, "n_layers", "num_hidden_layers");
  config.num_heads = either_size(fields, "n_heads", "num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = either_size(fields, "dim", "hidden_size");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer("hidden_dim");
  config.max_positions = fields.integer_or("max_position_embeddings", 512);
  config.norm_epsilon = 1e-12;
  config.activation = activation_named(fields, "activation", "gelu");
  config.biases = kAllBiases;
  return config;
}

ModelConfig gpt2_config(ConfigFields& fields) {
  constexpr std::string_view kScale = "heed scales scores by 1 / √head_dim";
  fields.expect("scale_attn_by_inverse_layer_idx", false, kScale);
  fields.expect("scale_attn_weights", true, kScale);
  ModelConfig config{.family = Family::kGpt2};
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
  config.biases = kAllBiases;
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", true);
  return config;
}

ModelConfig config_of(ConfigFields& fields) {
  const std::string type = fields.at("model_type").string();
  if (type == "bert") return bert_config(fields, Family::kBert);
  if (type == "roberta" || type == "xlm-roberta") return bert_config(fields, Family::kRoberta);
  if (type == "distilbert") return distilbert_config(fields);
  if (type == "gpt2") return gpt2_config(fields);
  if (const auto config = llama_like_config(fields, type)) return *config;
  if (const auto config = gemma_config(fields, type)) return *config;
  fields.json().fail(
      fmt::format(": model_type is \"{}\", expected bert, roberta, xlm-roberta, distilbert, gpt2, "
                  "llama, mistral, qwen2, qwen3, olmo2, "
                  "smollm3, gemma2 or gemma3_text",
                  type));
}

// Refuses weights that were quantised by AWQ, GPTQ, bitsandbytes and others.
void refuse_quantised(ConfigFields& fields, const char* key) {
  const auto found = fields.find(key);
  if (!found || !found->is(io::JsonKind::kObject) || found->value().items.empty()) {
    return fields.expect_nothing(key, "heed reads quantised weights from GGUF files");
  }
  const std::string method = found->string_or("quant_method", "a method without a name");
  found->fail(
      fmt::format(": the weights are quantised by {}, which heed does not read; it reads "
                  "GGUF files of the same model, and folders of numbers",
                  method));
}

// Checks members of all models for which heed supports one value only.
void check_common(ConfigFields& fields, const ModelConfig& config) {
  constexpr std::string_view kEncoderDecoder = "heed has encoders and decoders apart";
  fields.expect_nothing("is_encoder_decoder", kEncoderDecoder);
  fields.expect_nothing("tie_encoder_decoder", kEncoderDecoder);
  fields.expect_nothing("add_cross_attention", kEncoderDecoder);
  fields.expect_nothing("cross_attention_hidden_size", kEncoderDecoder);
  if (config.is_causal()) {
    fields.expect("is_causal", true, "heed's decoders see no later tokens");
    fields.find("is_decoder");  // heed's decoders are decoders with either value
  }
  fields.expect_nothing("auto_map", "the folder brings code of its own, which heed does not run");
  refuse_quantised(fields, "quantization_config");
  refuse_quantised(fields, "compression_config");
  fields.expect_nothing("pruned_heads", "heads that were taken out are not in the file");
}

// Reads one token or an array of them.
std::vector<std::int64_t> end_ids_of(ConfigFields& fields) {
  std::vector<std::int64_t> ids;
  const std::optional<io::JsonPart> ends = fields.find("eos_token_id");
  if (!ends) return ids;
  const bool is_array = ends->is(io::JsonKind::kArray);
  for (const io::JsonPart& end : is_array ? ends->items() : std::vector{*ends}) {
    if (std::find(ids.begin(), ids.end(), end.integer()) == ids.end()) ids.push_back(end.integer());
  }
  return ids;
}

// If generation_config.json gives the tokens that end a text, it takes precedence. Its other
// members control sampling, which callers set themselves.
void read_generation_config(const std::filesystem::path& folder, ModelConfig& config) {
  const std::filesystem::path path = folder / "generation_config.json";
  if (!std::filesystem::exists(path)) return;
  const JsonDocument document(path);
  ConfigFields fields(document.root());
  if (fields.has("eos_token_id")) config.end_ids = end_ids_of(fields);
}

}  // namespace

ModelConfig read_config(const std::filesystem::path& folder) {
  const std::filesystem::path transformer = transformer_folder(folder);
  const JsonDocument document(transformer / "config.json");
  ConfigFields fields(document.root());
  ModelConfig config = config_of(fields);
  check_common(fields, config);
  config.vocab_size = fields.integer("vocab_size");
  config.architecture = fields.at("model_type").string();
  if (const auto names = fields.find("architectures"); names && !names->items().empty()) {
    config.architecture = names->items().front().string();
  }
  config.end_ids = end_ids_of(fields);
  if (config.layers.empty()) config.layers = equal_layers(config);
  fields.ignore(keys_without_effect());
  fields.ignore(keys_without_effect(config.family));
  fields.ignore(keys_of_generation());
  fields.check_all_known();
  read_generation_config(transformer, config);
  config.pooling = read_pooling(folder, config.hidden_size);
  check_config(config, fields.file());
  return config;
}

}}}  // namespace heed::v0::models
