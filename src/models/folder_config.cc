// Configurations of folders as transformers and sentence-transformers save them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heed/models/config.h"
#include "io/json_value.h"
#include "io/text_file.h"
#include "models/config_checks.h"

namespace heed::inline v0::models {

namespace {

// A file of one JSON value, which its parts refer to.
class JsonDocument {
 public:
  explicit JsonDocument(const std::filesystem::path& path)
      : file_(path.string()), value_(io::parse_json(io::read_text_file(path), file_)) {}
  io::JsonPart root() const { return {file_, value_}; }

 private:
  std::string file_;
  io::JsonValue value_;
};

Activation activation_named(const io::JsonPart& json, const std::string& key) {
  const std::string name = json.at(key).string();
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::kGeluTanh;
  if (name == "silu") return Activation::kSilu;
  if (name == "relu") return Activation::kRelu;
  json.fail(fmt::format(": {} is \"{}\", expected gelu, gelu_new, gelu_pytorch_tanh, silu or relu",
                        key, name));
}

// A graph that heed lacks is refused by the member that asks for it.
void refuse(const io::JsonPart& json, const std::string& key) {
  if (json.boolean_or(key, false)) json.fail(fmt::format(": {} is true, which heed lacks", key));
}

// dim / num_heads, as configurations mean it that do not say it.
std::int64_t divided(const io::JsonPart& json, std::int64_t dim, std::int64_t num_heads) {
  if (num_heads < 1 || dim % num_heads != 0) {
    json.fail(fmt::format(": {} heads do not divide a hidden size of {}", num_heads, dim));
  }
  return dim / num_heads;
}

std::vector<double> numbers_of(const io::JsonPart& array) {
  std::vector<double> numbers;
  for (const io::JsonPart& item : array.items()) numbers.push_back(item.number());
  return numbers;
}

RotaryScaling yarn_of(const io::JsonPart& json, std::int64_t original) {
  YarnScaling scaling{.factor = json.at("factor").number(), .original_max_len = original};
  scaling.beta_fast = json.number_or("beta_fast", scaling.beta_fast);
  scaling.beta_slow = json.number_or("beta_slow", scaling.beta_slow);
  scaling.truncate = json.boolean_or("truncate", scaling.truncate);
  if (json.find("attention_factor"))
    scaling.attention_factor = json.at("attention_factor").number();
  if (json.find("mscale")) scaling.mscale = json.at("mscale").number();
  if (json.find("mscale_all_dim")) scaling.mscale_all_dim = json.at("mscale_all_dim").number();
  return scaling;
}

RotaryScaling long_rope_of(const io::JsonPart& json, std::int64_t original,
                           std::int64_t positions) {
  LongRopeScaling scaling{.short_factor = numbers_of(json.at("short_factor")),
                          .long_factor = numbers_of(json.at("long_factor")),
                          .original_max_len = original};
  scaling.factor =
      json.number_or("factor", static_cast<double>(positions) /
                                   static_cast<double>(std::max<std::int64_t>(original, 1)));
  if (json.find("attention_factor"))
    scaling.attention_factor = json.at("attention_factor").number();
  return scaling;
}

// @param positions that the model has, for scalings that do not say what it was trained on
RotaryScaling scaling_of(const io::JsonPart& json, std::int64_t positions) {
  const std::string type = json.string_or("rope_type", json.string_or("type", "default"));
  const std::int64_t original = json.integer_or("original_max_position_embeddings", positions);
  if (type == "default") return {};
  if (type == "linear") return LinearScaling{json.at("factor").number()};
  if (type == "dynamic") return DynamicNtkScaling{json.at("factor").number(), original};
  if (type == "yarn") return yarn_of(json, original);
  if (type == "longrope" || type == "su") return long_rope_of(json, original, positions);
  if (type == "llama3") {
    return Llama3Scaling{.factor = json.at("factor").number(),
                         .original_max_len = original,
                         .low_freq_factor = json.at("low_freq_factor").number(),
                         .high_freq_factor = json.at("high_freq_factor").number()};
  }
  json.fail(fmt::format(
      "rope_type is \"{}\", expected default, linear, dynamic, yarn, longrope, su or llama3",
      type));
}

// Of the parameters, where they have it, or of the whole configuration.
double either_number(const io::JsonPart& json, const std::optional<io::JsonPart>& parameters,
                     const char* key, double otherwise) {
  const double outside = json.number_or(key, otherwise);
  return parameters ? parameters->number_or(key, outside) : outside;
}

// transformers 5 has everything in rope_parameters; before it was rope_theta and rope_scaling.
RotaryPositions rotary_of(const io::JsonPart& json, const ModelConfig& config) {
  const bool is_new = json.find("rope_parameters").has_value();
  const std::optional<io::JsonPart> parameters =
      json.find(is_new ? "rope_parameters" : "rope_scaling");
  RotaryPositions rotary;
  rotary.base = either_number(json, parameters, "rope_theta", rotary.base);
  const double share = either_number(json, parameters, "partial_rotary_factor", 1);
  if (!(share > 0 && share <= 1)) {
    json.fail(fmt::format(": partial_rotary_factor is {}, expected more than 0 to 1", share));
  }
  rotary.rotary_dim = static_cast<std::int64_t>(static_cast<double>(config.head_dim) * share);
  rotary.pairing = RotaryPairing::kHalves;
  if (parameters) rotary.scaling = scaling_of(*parameters, config.max_positions);
  return rotary;
}

ModelConfig bert_config(const io::JsonPart& json) {
  refuse(json, "is_decoder");
  refuse(json, "add_cross_attention");
  if (const std::string kind = json.string_or("position_embedding_type", "absolute");
      kind != "absolute") {
    json.fail(fmt::format(": position_embedding_type is \"{}\", expected absolute", kind));
  }
  ModelConfig config{.family = Family::kBert};
  config.num_layers = json.at("num_hidden_layers").integer();
  config.num_heads = json.at("num_attention_heads").integer();
  config.num_kv_heads = config.num_heads;
  config.hidden_size = json.at("hidden_size").integer();
  config.head_dim = divided(json, config.hidden_size, config.num_heads);
  config.intermediate_size = json.at("intermediate_size").integer();
  config.max_positions = json.at("max_position_embeddings").integer();
  config.num_token_types = json.integer_or("type_vocab_size", 2);
  config.norm_epsilon = json.number_or("layer_norm_eps", 1e-12);
  config.activation = activation_named(json, "hidden_act");
  config.biases = {.inputs = true, .output = true, .feed_forward = true};
  return config;
}

ModelConfig gpt2_config(const io::JsonPart& json) {
  refuse(json, "scale_attn_by_inverse_layer_idx");
  refuse(json, "add_cross_attention");
  if (!json.boolean_or("scale_attn_weights", true)) {
    json.fail(": scale_attn_weights is false, which heed lacks");
  }
  ModelConfig config{.family = Family::kGpt2};
  config.num_layers = json.at("n_layer").integer();
  config.num_heads = json.at("n_head").integer();
  config.num_kv_heads = config.num_heads;
  config.hidden_size = json.at("n_embd").integer();
  config.head_dim = divided(json, config.hidden_size, config.num_heads);
  // A file may hold any number: four times it must not overflow before it is checked.
  config.intermediate_size =
      json.integer_or("n_inner", 4 * std::clamp<std::int64_t>(config.hidden_size, 0, 1 << 20));
  config.max_positions = json.integer_or("n_positions", json.integer_or("n_ctx", 1024));
  config.norm_epsilon = json.number_or("layer_norm_epsilon", 1e-5);
  config.activation = activation_named(json, "activation_function");
  config.biases = {.inputs = true, .output = true, .feed_forward = true};
  config.has_tied_head = json.boolean_or("tie_word_embeddings", true);
  return config;
}

// The window of Mistral, and of Qwen2 where all layers have it.
std::optional<std::int64_t> window_of(const io::JsonPart& json, const std::string& model_type) {
  if (!json.find("sliding_window")) return std::nullopt;
  if (model_type == "llama") return std::nullopt;
  if (model_type == "qwen2" && !json.boolean_or("use_sliding_window", false)) return std::nullopt;
  if (model_type == "qwen2") json.fail(": use_sliding_window is true, which heed lacks for qwen2");
  return json.at("sliding_window").integer();
}

// Qwen2's are fixed, Llama's are said.
Biases llama_biases(const io::JsonPart& json, const std::string& model_type) {
  if (model_type == "qwen2") return {.inputs = true};
  if (model_type == "mistral") return {};
  const bool has_biases = json.boolean_or("attention_bias", false);
  return {.inputs = has_biases,
          .output = has_biases,
          .feed_forward = json.boolean_or("mlp_bias", false)};
}

ModelConfig llama_config(const io::JsonPart& json, const std::string& model_type) {
  ModelConfig config{.family = Family::kLlama};
  config.num_layers = json.at("num_hidden_layers").integer();
  config.num_heads = json.at("num_attention_heads").integer();
  config.num_kv_heads = json.integer_or("num_key_value_heads", config.num_heads);
  config.hidden_size = json.at("hidden_size").integer();
  config.head_dim = json.find("head_dim") ? json.at("head_dim").integer()
                                          : divided(json, config.hidden_size, config.num_heads);
  config.intermediate_size = json.at("intermediate_size").integer();
  config.max_positions = json.integer_or("max_position_embeddings", 2048);
  config.norm_epsilon = json.number_or("rms_norm_eps", 1e-6);
  config.activation = activation_named(json, "hidden_act");
  config.biases = llama_biases(json, model_type);
  config.has_tied_head = json.boolean_or("tie_word_embeddings", false);
  config.rotary = rotary_of(json, config);
  config.window = window_of(json, model_type);
  return config;
}

ModelConfig config_of(const io::JsonPart& json) {
  const std::string type = json.at("model_type").string();
  if (type == "bert") return bert_config(json);
  if (type == "gpt2") return gpt2_config(json);
  if (type == "llama" || type == "mistral" || type == "qwen2") return llama_config(json, type);
  json.fail(
      fmt::format(": model_type is \"{}\", expected bert, gpt2, llama, mistral or qwen2", type));
}

// One token or an array of them.
void add_end_ids(const io::JsonPart& json, std::vector<std::int64_t>& ids) {
  const std::optional<io::JsonPart> ends = json.find("eos_token_id");
  if (!ends) return;
  const bool is_array = ends->is(io::JsonKind::kArray);
  for (const io::JsonPart& end : is_array ? ends->items() : std::vector{*ends}) {
    if (std::find(ids.begin(), ids.end(), end.integer()) == ids.end()) ids.push_back(end.integer());
  }
}

Pooling::Kind pooling_kind(const io::JsonPart& json) {
  if (json.boolean_or("pooling_mode_mean_tokens", false)) return Pooling::Kind::kMean;
  if (json.boolean_or("pooling_mode_cls_token", false)) return Pooling::Kind::kFirstToken;
  json.fail(": it names neither pooling_mode_mean_tokens nor pooling_mode_cls_token as true");
}

// Whether vectors go through a layer that makes their length 1.
bool normalizes(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "modules.json")) return false;
  const JsonDocument document(folder / "modules.json");
  for (const io::JsonPart& module : document.root().items()) {
    if (module.string_or("type", "") == "sentence_transformers.models.Normalize") return true;
  }
  return false;
}

// How sentence-transformers makes one vector of a text's tokens, where the folder says so.
std::optional<Pooling> read_pooling(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "1_Pooling" / "config.json";
  if (!std::filesystem::exists(file)) return std::nullopt;
  Pooling pooling{.kind = pooling_kind(JsonDocument(file).root())};
  pooling.normalize = std::filesystem::exists(folder / "2_Normalize") || normalizes(folder);
  if (std::filesystem::exists(folder / "sentence_bert_config.json")) {
    const JsonDocument document(folder / "sentence_bert_config.json");
    pooling.max_tokens = document.root().integer_or("max_seq_length", kUnbounded);
    if (pooling.max_tokens < 1) {
      document.root().fail(
          fmt::format(": max_seq_length is {}, expected at least 1", pooling.max_tokens));
    }
  }
  return pooling;
}

}  // namespace

ModelConfig read_config(const std::filesystem::path& folder) {
  const JsonDocument document(folder / "config.json");
  const io::JsonPart json = document.root();
  ModelConfig config = config_of(json);
  config.vocab_size = json.at("vocab_size").integer();
  config.architecture = json.at("model_type").string();
  if (const auto names = json.find("architectures"); names && !names->items().empty()) {
    config.architecture = names->items().front().string();
  }
  add_end_ids(json, config.end_ids);
  if (std::filesystem::exists(folder / "generation_config.json")) {
    add_end_ids(JsonDocument(folder / "generation_config.json").root(), config.end_ids);
  }
  config.pooling = read_pooling(folder);
  check_config(config, json.file());
  return config;
}

}  // namespace heed::inline v0::models
