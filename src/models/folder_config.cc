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

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::pair<std::string_view, Activation> kActivations[] = {
    {"gelu", Activation::kGelu},
    {"gelu_python", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_python_tanh", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_accurate", Activation::kGeluTanh},
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"relu", Activation::kRelu}};

Activation activation_named(ConfigFields& fields, const char* key, const char* otherwise) {
  const std::string name = fields.string_or(key, otherwise);
  const auto* const found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                         [&](const auto& known) { return known.first == name; });
  if (found != std::end(kActivations)) return found->second;
  fields.json().fail(fmt::format(
      ": {} is \"{}\", expected gelu, gelu_new, gelu_pytorch_tanh, silu or relu", key, name));
}

// dim / num_heads, the default of configurations without a head size.
std::int64_t divided(const ConfigFields& fields, std::int64_t dim, std::int64_t num_heads) {
  if (num_heads < 1 || dim % num_heads != 0) {
    fields.json().fail(fmt::format(": {} heads do not divide a hidden size of {}", num_heads, dim));
  }
  return dim / num_heads;
}

// Reads a size that has two possible names.
std::int64_t either_size(ConfigFields& fields, const char* key, const char* other) {
  const auto second = fields.find(other);
  if (!second) return fields.integer(key);
  const std::int64_t size = second->integer();
  fields.expect(key, size, fmt::format("{} says so, which is the same", other));
  return size;
}

constexpr Biases kAllBiases{.inputs = true, .output = true, .feed_forward = true};

ModelConfig bert_config(ConfigFields& fields) {
  fields.expect("is_decoder", false, "heed has BERT as an encoder");
  fields.expect("is_causal", false, "heed has BERT as an encoder");
  fields.expect("position_embedding_type", "absolute", "heed has no other positions of BERT");
  ModelConfig config{.family = Family::kBert};
  config.num_layers = fields.integer("num_hidden_layers");
  config.num_heads = fields.integer("num_attention_heads");
  config.num_kv_heads = config.num_heads;
  config.hidden_size = fields.integer("hidden_size");
  config.head_dim = divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer("intermediate_size");
  config.max_positions = fields.integer("max_position_embeddings");
  config.num_token_types = fields.integer_or("type_vocab_size", 2);
  config.norm_epsilon = fields.number_or("layer_norm_eps", 1e-12);
  config.activation = activation_named(fields, "hidden_act", "gelu");
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

// The defaults in which Llama, Mistral and Qwen2 differ.
struct LlamaKind {
  std::string_view name;
  std::int64_t max_positions;
  std::int64_t num_kv_heads;  // 0: as many as heads
  std::int64_t window;        // 0: no window
};
constexpr LlamaKind kLlama{.name = "llama", .max_positions = 2048, .num_kv_heads = 0, .window = 0};
constexpr LlamaKind kMistral{
    .name = "mistral", .max_positions = 131072, .num_kv_heads = 8, .window = 4096};
constexpr LlamaKind kQwen2{
    .name = "qwen2", .max_positions = 32768, .num_kv_heads = 32, .window = 4096};

std::int64_t kv_heads_of(ConfigFields& fields, const LlamaKind& kind, std::int64_t num_heads) {
  const bool is_missing = !fields.has("num_key_value_heads") && kind.num_kv_heads > 0;
  return fields.integer_or("num_key_value_heads", is_missing ? kind.num_kv_heads : num_heads);
}

// Fixed for Qwen2, none for Mistral, read from the file for Llama.
Biases biases_of(ConfigFields& fields, const LlamaKind& kind) {
  if (kind.name == kLlama.name) {
    const bool has_biases = fields.boolean_or("attention_bias", false);
    return {.inputs = has_biases,
            .output = has_biases,
            .feed_forward = fields.boolean_or("mlp_bias", false)};
  }
  const bool is_qwen2 = kind.name == kQwen2.name;
  fields.expect("attention_bias", is_qwen2, "a model of this type has it so");
  fields.expect("mlp_bias", false, "a model of this type has it so");
  return {.inputs = is_qwen2};
}

// The number of layers with a window, from layer_types; `otherwise` if that is missing.
std::int64_t layers_with_window(ConfigFields& fields, std::int64_t num_layers,
                                std::int64_t otherwise) {
  const auto types = fields.find("layer_types");
  if (!types) return otherwise;
  const std::vector<io::JsonPart> items = types->items();
  if (static_cast<std::int64_t>(items.size()) != num_layers) {
    types->fail(
        fmt::format(" has {} types, expected one for each of {} layers", items.size(), num_layers));
  }
  std::int64_t count = 0;
  for (const io::JsonPart& item : items) {
    const bool is_sliding = item.string() == "sliding_attention";
    if (!is_sliding && item.string() != "full_attention") {
      item.fail(
          fmt::format(" is \"{}\", expected full_attention or sliding_attention", item.string()));
    }
    count += is_sliding ? 1 : 0;
  }
  return count;
}

// The number of positions that a query sees, including its own, which must be equal in all layers.
// A Mistral always has its window; a Llama has none.
std::optional<std::int64_t> window_of(ConfigFields& fields, const LlamaKind& kind,
                                      std::int64_t num_layers) {
  std::optional<std::int64_t> size;
  if (const auto found = fields.find("sliding_window")) size = found->integer();
  if (!fields.has("sliding_window") && kind.window > 0) size = kind.window;
  const bool is_qwen2 = kind.name == kQwen2.name;
  const bool is_mistral = kind.name == kMistral.name;
  const bool is_used = fields.boolean_or("use_sliding_window", !is_qwen2) && size;
  const std::int64_t all = std::max<std::int64_t>(num_layers, 0);
  const std::int64_t first = fields.integer_or("max_window_layers", is_qwen2 ? 28 : 0);
  const std::int64_t behind = all - std::clamp<std::int64_t>(first, 0, all);
  const std::int64_t layers = layers_with_window(fields, num_layers, is_used ? behind : 0);
  if (layers == 0 && !(is_mistral && size)) return std::nullopt;
  if (is_used && layers == num_layers && kind.window > 0) return size;
  fields.json().fail(fmt::format(
      ": sliding_window is {}, use_sliding_window {}, and {} of {} layers have the window by "
      "max_window_layers or layer_types; heed computes {} models with {}",
      size.value_or(0), is_used, layers, num_layers, kind.name,
      kind.window == 0 ? "no window" : "one window in all layers or none"));
}

ModelConfig llama_config(ConfigFields& fields, const LlamaKind& kind) {
  fields.expect("rope_interleaved", false, "heed turns the halves of heads");
  ModelConfig config{.family = Family::kLlama};
  config.num_layers = fields.integer("num_hidden_layers");
  config.num_heads = fields.integer("num_attention_heads");
  config.num_kv_heads = kv_heads_of(fields, kind, config.num_heads);
  config.hidden_size = fields.integer("hidden_size");
  config.head_dim = fields.find("head_dim") ? fields.integer("head_dim")
                                            : divided(fields, config.hidden_size, config.num_heads);
  config.intermediate_size = fields.integer("intermediate_size");
  config.max_positions = fields.integer_or("max_position_embeddings", kind.max_positions);
  config.norm_epsilon = fields.number_or("rms_norm_eps", 1e-6);
  config.activation = activation_named(fields, "hidden_act", "silu");
  config.biases = biases_of(fields, kind);
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", false);
  config.rotary = read_rotary(fields, config);
  config.window = window_of(fields, kind, config.num_layers);
  return config;
}

ModelConfig config_of(ConfigFields& fields) {
  const std::string type = fields.at("model_type").string();
  if (type == "bert") return bert_config(fields);
  if (type == "gpt2") return gpt2_config(fields);
  for (const LlamaKind& kind : {kLlama, kMistral, kQwen2}) {
    if (type == kind.name) return llama_config(fields, kind);
  }
  fields.json().fail(
      fmt::format(": model_type is \"{}\", expected bert, gpt2, llama, mistral or qwen2", type));
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
  constexpr std::string_view kQuantised = "heed reads quantised weights from GGUF files";
  fields.expect_nothing("quantization_config", kQuantised);
  fields.expect_nothing("compression_config", kQuantised);
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
