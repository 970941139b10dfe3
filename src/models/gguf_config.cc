// Configurations of GGUF files. Their keys have the meaning that llama.cpp gives them. A key that
// requests something heed lacks is refused, and so is an unknown key. Source: llama.cpp,
// llama_model::load_hparams and the files of each architecture in the same folder.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heed/core/elementary.h"
#include "heed/core/error.h"
#include "heed/models/checkpoint.h"
#include "heed/models/config.h"
#include "io/gguf_keys.h"
#include "models/config_reading.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::string_view kRopeBase = "rope.freq_base";
constexpr std::string_view kRopeScaling = "rope.scaling.type";
constexpr std::string_view kRopeFactor = "rope.scaling.factor";
constexpr std::string_view kOldRopeFactor = "rope.scale_linear";
constexpr std::string_view kRopeAttention = "rope.scaling.attn_factor";
constexpr std::string_view kYarnMixture = "rope.scaling.yarn_ext_factor";
constexpr std::string_view kYarnFast = "rope.scaling.yarn_beta_fast";
constexpr std::string_view kYarnSlow = "rope.scaling.yarn_beta_slow";
constexpr std::string_view kDivisors = "rope_freqs.weight";

double gguf_base(io::GgufKeys& keys) {
  const double base = keys.number(kRopeBase, 10000);
  // With a smaller base, frequencies would grow from pair to pair.
  if (!(base >= 1 && std::isfinite(base))) keys.fail(kRopeBase, "a number, at least 1");
  return base;
}

// The divisor of frequencies. 0 in the file stands for 1.
double gguf_factor(io::GgufKeys& keys) {
  const std::string_view key = keys.has(kRopeFactor) ? kRopeFactor : kOldRopeFactor;
  const double factor = keys.number(key, 0);
  if (factor == 0) return 1;
  if (!(factor >= 1 && std::isfinite(factor))) keys.fail(key, "a number, at least 1, or 0: none");
  return factor;
}

// Refuses corrections of cosines and sines other than YaRN's own; files may state the neutral
// values.
void check_no_corrections(io::GgufKeys& keys) {
  constexpr std::string_view kReason = "cosines and sines have YaRN's own factor";
  keys.expect_number("rope.scaling.yarn_attn_factor", 1, kReason);
  keys.expect_number("rope.scaling.yarn_log_multiplier", 0, kReason);
  keys.expect_number("rope.scaling.alpha", 0, "heed has no such scaling");
}

RotaryScaling gguf_yarn(io::GgufKeys& keys, double factor, std::int64_t positions) {
  YarnScaling scaling{.factor = factor};
  scaling.original_max_len = keys.has("rope.scaling.original_context_length")
                                 ? keys.size("rope.scaling.original_context_length")
                                 : positions;
  scaling.beta_fast = keys.number(kYarnFast, scaling.beta_fast);
  scaling.beta_slow = keys.number(kYarnSlow, scaling.beta_slow);
  if (!(scaling.beta_slow > 0 && std::isfinite(scaling.beta_slow))) {
    keys.fail(kYarnSlow, "a positive number");
  }
  if (!(scaling.beta_fast > scaling.beta_slow && std::isfinite(scaling.beta_fast))) {
    keys.fail(kYarnFast, fmt::format("more than yarn_beta_slow, {}", scaling.beta_slow));
  }
  const double attention = keys.number(kRopeAttention, 1);
  if (!(attention > 0 && std::isfinite(attention))) keys.fail(kRopeAttention, "a positive number");
  scaling.attention_factor = attention * (1 + 0.1 * elementary::log(factor));
  return scaling;
}

RotaryScaling gguf_scaling(io::GgufKeys& keys, std::int64_t positions) {
  const std::string type = keys.string(kRopeScaling, "linear");
  const double factor = gguf_factor(keys);
  const bool is_yarn = type == "yarn";
  if (!is_yarn && type != "linear" && type != "none")
    keys.fail(kRopeScaling, "none, linear or yarn");
  check_no_corrections(keys);
  // A negative number selects the default of the scaling type.
  if (keys.number(kYarnMixture, -1) >= 0) {
    keys.expect_number(kYarnMixture, is_yarn ? 1 : 0, "scalings are not mixed otherwise");
  }
  if (is_yarn) return gguf_yarn(keys, factor, positions);
  keys.expect_number(kRopeAttention, 1, "cosines and sines have a factor with YaRN only");
  // Other scalings ignore these.
  keys.ignore("rope.scaling.original_context_length");
  keys.ignore(kYarnFast);
  keys.ignore(kYarnSlow);
  if (type == "none" || factor == 1) return {};
  return LinearScaling{factor};
}

// Reads the keys that begin with "rope.", as llama.cpp does: every dimension of a head is rotated,
// and a factor without a type divides the frequencies.
// @param keys of the architecture
// @param config its sizes
RotaryPositions read_gguf_rotary(io::GgufKeys& keys, const ModelConfig& config) {
  RotaryPositions rotary{.base = gguf_base(keys), .rotary_dim = config.head_dim};
  keys.expect_number("rope.dimension_count", static_cast<double>(config.head_dim),
                     "the architecture turns whole heads");
  rotary.scaling = gguf_scaling(keys, config.max_positions);
  if (std::holds_alternative<YarnScaling>(rotary.scaling) && rotary.base == 1) {
    keys.fail(kRopeBase, "more than 1 with YaRN");
  }
  return rotary;
}

// Llama 3's scaling, precomputed by the file's author: the frequency of each pair is divided by an
// element of the tensor rope_freqs.weight. Source: ggml, ggml_rope_ext (freq_factors).
void read_divisors(const GgufFile& file, ModelConfig& config) {
  if (!file.tensors().contains(kDivisors)) return;
  const auto fail = [&](const std::string& problem) {
    throw FormatError(file.name(), 0, fmt::format("tensor {} {}", kDivisors, problem));
  };
  if (!config.rotary || config.architecture != "llama") {
    fail(fmt::format("scales rotary frequencies, which the architecture {} lacks",
                     config.architecture));
  }
  const StoredTensor stored = Checkpoint::of(file).tensor(kDivisors);
  const Shape expected{config.rotary->rotary_dim / 2};
  if (stored.shape != expected) {
    fail(fmt::format("has shape {}, expected {}", to_string(stored.shape), to_string(expected)));
  }
  const Tensor<float> divisors = to_float(stored);
  for (const float divisor : divisors.elements()) {
    if (!(divisor > 0) || !std::isfinite(divisor)) {
      fail(fmt::format("holds {}, expected positive numbers", divisor));
    }
    config.rotary->divisors.push_back(divisor);
  }
}

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
  if (config.family == Family::kLlama) return dim;
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
ModelConfig llama_config(GgufKeys& keys, RotaryPairing pairing) {
  ModelConfig config = sizes_of(keys, Family::kLlama);
  config.norm_epsilon = epsilon_of(keys, "attention.layer_norm_rms_epsilon");
  config.activation = Activation::kSilu;
  config.rotary = read_gguf_rotary(keys, config);
  config.rotary->pairing = pairing;
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
  if (architecture == "llama") return llama_config(keys, RotaryPairing::kNeighbours);
  if (architecture == "qwen2") return llama_config(keys, RotaryPairing::kHalves);
  if (architecture == "gpt2") return layer_norm_config(keys, Family::kGpt2, Activation::kGeluTanh);
  if (architecture == "bert") return layer_norm_config(keys, Family::kBert, Activation::kGelu);
  GgufKeys(keys.file(), "general.").fail("architecture", "llama, qwen2, gpt2 or bert");
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

// GPT-2, BERT and Qwen2 have biases; files of the architecture "llama" may have them.
Biases biases_of(const GgufFile& file, const ModelConfig& config) {
  if (config.family != Family::kLlama) {
    return {.inputs = true, .output = true, .feed_forward = true};
  }
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
  read_table_sizes(keys, config);
  keys.refuse_others();
  config.biases = biases_of(file, config);
  read_divisors(file, config);
  config.end_ids = end_ids_of(file);
  check_config(config, file.name());
  return config;
}

}}}  // namespace heed::v0::models
