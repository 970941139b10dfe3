// Configurations of GGUF files. Their keys have the meaning that llama.cpp gives them. A key that
// requests something heed lacks is refused, and so is an unknown key. Source: llama.cpp,
// llama_model::load_hparams and the files of each architecture in the same folder.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"
#include "heed/models/config.h"
#include "io/gguf_keys.h"
#include "models/config_reading.h"
#include "models/gguf_rotary.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

using io::GgufKeys;

// A key that changes nothing if it has this value.
struct GgufIdleKey {
  const char* name;
  double value;
  const char* reason;
};
constexpr const char* kNoExperts = "heed has no mixtures of experts";
constexpr std::array kGgufIdleKeys{GgufIdleKey{"expert_count", 0, kNoExperts},
                                   GgufIdleKey{"expert_used_count", 0, kNoExperts},
                                   GgufIdleKey{"expert_shared_count", 0, kNoExperts},
                                   GgufIdleKey{"expert_group_count", 0, kNoExperts},
                                   GgufIdleKey{"expert_group_used_count", 0, kNoExperts}};

// Keys that change nothing, whatever their value.
struct GgufIgnoredKey {
  const char* name;
  const char* reason;
};
constexpr std::array kGgufIgnoredKeys{
    GgufIgnoredKey{"attention.sliding_window", "these architectures have layers without a window"},
    GgufIgnoredKey{"rope.scaling.finetuned", "how the model was trained"},
    GgufIgnoredKey{"tensor_data_layout", "how the model was converted"},
    GgufIgnoredKey{"attention.layer_norm_epsilon", "of norms that the architecture lacks"},
    GgufIgnoredKey{"attention.layer_norm_rms_epsilon", "of norms that the architecture lacks"}};

// The prefixes of keys in other kinds of files: adapters, image encoders, statistics of weights,
// and functions of other architectures. Keys that llama.cpp does not have at all are notes of the
// file's author.
constexpr std::array kOtherFiles{"adapter.", "clip.", "imatrix.", "diffusion.", "xielu."};

void check_kind_of_file(const GgufFile& file) {
  GgufKeys general(file, "general.");
  if (general.string("type", "model") != "model") {
    general.fail("type", "'model': the file has something to use beside a model");
  }
  general.expect_number("quantization_version", 2, "quantised blocks are read in this layout");
  for (const char* prefix : kOtherFiles) GgufKeys(file, prefix).refuse_others();
}

std::int64_t head_dim_of(GgufKeys& keys, const ModelConfig& config) {
  constexpr const char* kHeads = "attention.head_count";
  const bool is_said = keys.has("attention.key_length");
  if (!is_said && config.hidden_size % config.num_heads != 0) {
    keys.fail(kHeads, fmt::format("a divisor of {}, {}", keys.name_of("embedding_length"),
                                  config.hidden_size));
  }
  const std::int64_t divided = config.hidden_size / config.num_heads;
  const std::int64_t dim = is_said ? keys.size("attention.key_length") : divided;
  keys.expect_number("attention.value_length", static_cast<double>(dim),
                     "values are as long as keys");
  if (!config.has_layer_norms()) return dim;
  keys.expect_number("attention.key_length", static_cast<double>(divided),
                     "the architecture's heads divide the embedding");
  keys.expect_number("attention.head_count_kv", static_cast<double>(config.num_heads),
                     "the architecture's heads share no keys");
  return dim;
}

// Reads the sizes that every architecture has.
ModelConfig sizes_of(GgufKeys& keys, Family family) {
  ModelConfig config{.family = family, .architecture = keys.file().string("general.architecture")};
  config.num_layers = keys.size("block_count");
  config.hidden_size = keys.size("embedding_length");
  config.max_positions = keys.size("context_length");
  config.intermediate_size = keys.size_in_layers("feed_forward_length", config.num_layers);
  config.num_heads = keys.size_in_layers("attention.head_count", config.num_layers);
  constexpr const char* kKeyHeads = "attention.head_count_kv";
  config.num_kv_heads =
      keys.has(kKeyHeads) ? keys.size_in_layers(kKeyHeads, config.num_layers) : config.num_heads;
  if (config.num_heads % config.num_kv_heads != 0) {
    keys.fail(kKeyHeads, fmt::format("a divisor of {}, {}", keys.name_of("attention.head_count"),
                                     config.num_heads));
  }
  config.head_dim = head_dim_of(keys, config);
  return config;
}

double epsilon_of(GgufKeys& keys, const char* key) {
  const double epsilon = keys.number(key);
  if (!(epsilon >= 0 && std::isfinite(epsilon))) keys.fail(key, "a number, at least 0");
  return epsilon;
}

// Files of the architecture "llama" store the rows of query and key in the order for rotating
// adjacent dimensions; others in the order of transformers.
ModelConfig llama_config(GgufKeys& keys, Family family, RotaryPairing pairing) {
  ModelConfig config = sizes_of(keys, family);
  config.norm_epsilon = epsilon_of(keys, "attention.layer_norm_rms_epsilon");
  config.activation = Activation::kSilu;
  config.rotaries = {read_gguf_rotary(keys, config)};
  config.rotaries.front().pairing = pairing;
  config.layers =
      std::vector<LayerConfig>(num_layers_to_describe(config), LayerConfig{.rotary = 0});
  return config;
}

// llama.cpp leaves out the rotary embedding of every fourth layer.
ModelConfig smollm3_config(GgufKeys& keys) {
  ModelConfig config = llama_config(keys, Family::kSmolLm3, RotaryPairing::kNeighbours);
  for (std::size_t i = 3; i < config.layers.size(); i += 4) config.layers[i].rotary = std::nullopt;
  return config;
}

// 0 in the file stands for none.
std::optional<double> softcap_of(GgufKeys& keys, const char* key, double otherwise) {
  const double cap = keys.number(key, otherwise);
  if (!(cap >= 0 && std::isfinite(cap))) keys.fail(key, "a number, at least 0");
  return cap == 0 ? std::nullopt : std::optional(cap);
}

// Gemma 2 has a window in every second layer, Gemma 3 in all but every sixth. The largest models
// of both divide the hidden size, not the size of heads, for the scale: llama.cpp knows them by
// their number of layers.
ModelConfig gemma_config(GgufKeys& keys, Family family) {
  const bool is_second = family == Family::kGemma2;
  ModelConfig config = llama_config(keys, family, RotaryPairing::kHalves);
  config.activation = Activation::kGeluTanh;
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  const bool is_largest = config.num_layers == (is_second ? 46 : 62);
  const double dim =
      static_cast<double>(is_largest ? config.hidden_size / config.num_heads : config.head_dim);
  config.attention_scale = 1 / std::sqrt(dim);
  if (is_second) {
    config.score_softcap = softcap_of(keys, "attn_logit_softcapping", 50);
    config.logit_softcap = softcap_of(keys, "final_logit_softcapping", 30);
  } else {
    config.logit_softcap = softcap_of(keys, "final_logit_softcapping", 0);
    config.rotaries.push_back(read_gguf_window_rotary(keys, config));
  }
  constexpr const char* kWindow = "attention.sliding_window";
  if (!is_second && !keys.has(kWindow)) return config;
  const std::int64_t window = keys.has(kWindow) ? keys.size(kWindow) : 4096;
  const std::size_t period = is_second ? 2 : 6;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if ((i + 1) % period == 0) continue;
    config.layers[i].window = window;
    if (!is_second) config.layers[i].rotary = 1;
  }
  return config;
}

ModelConfig layer_norm_config(GgufKeys& keys, Family family, Activation activation) {
  ModelConfig config = sizes_of(keys, family);
  config.norm_epsilon = epsilon_of(keys, "attention.layer_norm_epsilon");
  config.activation = activation;
  return config;
}

ModelConfig config_of(GgufKeys& keys) {
  const std::string& architecture = keys.file().string("general.architecture");
  constexpr RotaryPairing kHalves = RotaryPairing::kHalves;
  if (architecture == "llama") {
    return llama_config(keys, Family::kLlama, RotaryPairing::kNeighbours);
  }
  if (architecture == "qwen2") return llama_config(keys, Family::kLlama, kHalves);
  if (architecture == "qwen3") return llama_config(keys, Family::kQwen3, kHalves);
  if (architecture == "olmo2") {
    keys.expect_number("attention.sliding_window", 0, "with a window it is OLMo 3");
    return llama_config(keys, Family::kOlmo2, kHalves);
  }
  if (architecture == "smollm3") return smollm3_config(keys);
  if (architecture == "gemma2") return gemma_config(keys, Family::kGemma2);
  if (architecture == "gemma3") return gemma_config(keys, Family::kGemma3);
  if (architecture == "gpt2") return layer_norm_config(keys, Family::kGpt2, Activation::kGeluTanh);
  if (architecture == "bert") return layer_norm_config(keys, Family::kBert, Activation::kGelu);
  GgufKeys(keys.file(), "general.")
      .fail("architecture", "llama, qwen2, qwen3, olmo2, smollm3, gemma2, gemma3, gpt2 or bert");
}

// The pooling of a text's vectors to one, from llama.cpp's numbers.
std::optional<Pooling> pooling_of(GgufKeys& keys) {
  constexpr const char* kKey = "pooling_type";
  const std::int64_t type = keys.integer(kKey, 0);
  if (type == 0) return std::nullopt;
  if (type == 1) return Pooling{.kinds = {Pooling::Kind::kMean}};
  if (type == 2) return Pooling{.kinds = {Pooling::Kind::kFirstToken}};
  keys.fail(kKey, "0 (none), 1 (the mean) or 2 (the first token)");
}

std::int64_t rows_of(const GgufFile& file, const char* tensor) {
  const auto found = file.tensors().find(tensor);
  if (found == file.tensors().end() || found->second.shape.rank() != 2) {
    throw FormatError(file.name(), 0, fmt::format("tensor {} [rows, columns] is missing", tensor));
  }
  return found->second.shape[0];
}

// Takes sizes from the tensors, and checks the file's keys against them.
void read_table_sizes(GgufKeys& keys, ModelConfig& config) {
  const GgufFile& file = keys.file();
  config.vocab_size = rows_of(file, "token_embd.weight");
  config.has_tied_head = !file.tensors().contains("output.weight");
  keys.expect_number("vocab_size", static_cast<double>(config.vocab_size),
                     "so many rows has token_embd.weight");
  if (config.family != Family::kBert || !file.tensors().contains("token_types.weight")) return;
  config.num_token_types = rows_of(file, "token_types.weight");
  GgufKeys(file, "tokenizer.ggml.")
      .expect_number("token_type_count", static_cast<double>(config.num_token_types),
                     "so many rows has token_types.weight");
}

// All tokens after which llama.cpp ends a text.
std::vector<std::int64_t> end_ids_of(const GgufFile& file) {
  GgufKeys keys(file, "tokenizer.ggml.");
  std::vector<std::int64_t> ids;
  for (const char* role : {"eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"}) {
    const std::string key = fmt::format("{}_token_id", role);
    if (keys.has(key)) ids.push_back(keys.integer(key, 0));
  }
  return ids;
}

// GPT-2, BERT and Qwen2 have biases; files of the architecture "llama" may have them. In files of
// other architectures they are tensors without use, which WeightReader refuses.
Biases biases_of(const GgufFile& file, const ModelConfig& config) {
  if (config.has_layer_norms()) return {.inputs = true, .output = true, .feed_forward = true};
  if (config.family != Family::kLlama) return {};
  return {.inputs = config.architecture == "qwen2" || file.tensors().contains("blk.0.attn_q.bias"),
          .output = file.tensors().contains("blk.0.attn_output.bias"),
          .feed_forward = file.tensors().contains("blk.0.ffn_down.bias")};
}

}  // namespace

ModelConfig read_config(const GgufFile& file) {
  check_kind_of_file(file);
  GgufKeys keys(file, file.string("general.architecture") + ".");
  ModelConfig config = config_of(keys);
  config.pooling = pooling_of(keys);
  keys.expect_flag("attention.causal", config.is_causal(),
                   "heed's models of this architecture see no other tokens");
  keys.expect_flag("use_parallel_residual", false, "the parts of a layer follow each other");
  for (const auto& [name, value, reason] : kGgufIdleKeys) keys.expect_number(name, value, reason);
  for (const auto& [name, reason] : kGgufIgnoredKeys) keys.ignore(name);
  if (config.layers.empty()) {
    config.layers = std::vector<LayerConfig>(num_layers_to_describe(config));
  }
  read_table_sizes(keys, config);
  keys.refuse_others();
  config.biases = biases_of(file, config);
  read_gguf_divisors(file, config);
  config.end_ids = end_ids_of(file);
  check_config(config, file.name());
  return config;
}

}}}  // namespace heed::v0::models
