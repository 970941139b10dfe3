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

// How an architecture turns queries and keys.
enum class Rotary {
  kNone,
  kHalves,      // rows of query and key have the order of transformers
  kNeighbours,  // they have the order for turning adjacent dimensions
};

struct Architecture;
ModelConfig common_config(GgufKeys& keys, const Architecture& architecture);

// What architectures differ in.
struct Architecture {
  std::string_view name;
  Family family;
  // Heads divide the embedding and share no keys; no key of the file may say otherwise.
  bool has_plain_heads = false;
  bool sees_later_tokens = false;
  Rotary rotary = Rotary::kHalves;
  bool turns_parts = false;      // part of each head may be turned
  bool order_key_counts = true;  // use_parallel_residual is right
  NormKind norms = NormKind::kRms;
  HeadNorms head_norms = HeadNorms::kNone;
  Activation activation = Activation::kSilu;
  Biases biases = {};           // those that its files have
  Biases possible_biases = {};  // those that they may have
  ModelConfig (*read)(GgufKeys&, const Architecture&) = common_config;
};

std::int64_t head_dim_of(GgufKeys& keys, const Architecture& architecture,
                         const ModelConfig& config) {
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
  if (!architecture.has_plain_heads) return dim;
  keys.expect_number("attention.key_length", static_cast<double>(divided),
                     "the architecture's heads divide the embedding");
  keys.expect_number("attention.head_count_kv", static_cast<double>(config.num_heads),
                     "the architecture's heads share no keys");
  return dim;
}

// Reads the sizes that every architecture has.
ModelConfig sizes_of(GgufKeys& keys, const Architecture& architecture) {
  ModelConfig config{.family = architecture.family,
                     .architecture = std::string(architecture.name),
                     .sees_later_tokens = architecture.sees_later_tokens,
                     .norms = architecture.norms,
                     .head_norms = architecture.head_norms,
                     .activation = architecture.activation};
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
  config.head_dim = head_dim_of(keys, architecture, config);
  return config;
}

double epsilon_of(GgufKeys& keys, const char* key) {
  const double epsilon = keys.number(key);
  if (!(epsilon >= 0 && std::isfinite(epsilon))) keys.fail(key, "a number, at least 0");
  return epsilon;
}

// The configuration of most architectures, as their row of the table says.
ModelConfig common_config(GgufKeys& keys, const Architecture& architecture) {
  ModelConfig config = sizes_of(keys, architecture);
  const bool has_layer_norms = config.norms == NormKind::kLayer;
  config.norm_epsilon = epsilon_of(
      keys, has_layer_norms ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon");
  config.layers = std::vector<LayerConfig>(num_layers_to_describe(config));
  if (architecture.rotary == Rotary::kNone) return config;
  config.rotaries = {read_gguf_rotary(keys, config, architecture.turns_parts)};
  if (architecture.rotary == Rotary::kNeighbours) {
    config.rotaries.front().pairing = RotaryPairing::kNeighbours;
  }
  for (LayerConfig& layer : config.layers) layer.rotary = 0;
  return config;
}

// llama.cpp leaves out the rotary embedding of every fourth layer.
ModelConfig smollm3_config(GgufKeys& keys, const Architecture& architecture) {
  ModelConfig config = common_config(keys, architecture);
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
ModelConfig gemma_config(GgufKeys& keys, const Architecture& architecture) {
  const bool is_second = architecture.family == Family::kGemma2;
  ModelConfig config = common_config(keys, architecture);
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

// OLMo 3 has the same architecture, and windows.
ModelConfig olmo2_config(GgufKeys& keys, const Architecture& architecture) {
  keys.expect_number("attention.sliding_window", 0, "with a window it is OLMo 3");
  return common_config(keys, architecture);
}

bool has_tensor(const GgufKeys& keys, const char* name) {
  return keys.file().tensors().contains(name);
}

// The parts of a layer are parallel as a key says, with a norm for each.
ModelConfig gptneox_config(GgufKeys& keys, const Architecture& architecture) {
  ModelConfig config = common_config(keys, architecture);
  constexpr const char* kParallel = "use_parallel_residual";
  if (!keys.has(kParallel)) keys.fail(kParallel, "true or false");
  if (keys.boolean(kParallel, true)) config.part_order = PartOrder::kParallel;
  return config;
}

// One norm for both parts, or two: the tensors tell, and the key is not always right.
ModelConfig stablelm_config(GgufKeys& keys, const Architecture& architecture) {
  ModelConfig config = common_config(keys, architecture);
  if (!has_tensor(keys, "blk.0.ffn_norm.weight")) config.part_order = PartOrder::kParallelOneNorm;
  if (has_tensor(keys, "blk.0.attn_q_norm.weight")) config.head_norms = HeadNorms::kOwn;
  return config;
}

ModelConfig phi2_config(GgufKeys& keys, const Architecture& architecture) {
  ModelConfig config = common_config(keys, architecture);
  config.part_order = PartOrder::kParallelOneNorm;
  return config;
}

ModelConfig falcon_config(GgufKeys& keys, const Architecture& architecture) {
  ModelConfig config = common_config(keys, architecture);
  config.part_order = has_tensor(keys, "blk.0.attn_norm_2.weight") ? PartOrder::kParallel
                                                                   : PartOrder::kParallelOneNorm;
  return config;
}

double scale_of(GgufKeys& keys, const char* key) {
  const double scale = keys.number(key);
  if (!(scale > 0 && std::isfinite(scale))) keys.fail(key, "a positive number");
  return scale;
}

ModelConfig command_r_config(GgufKeys& keys, const Architecture& architecture) {
  ModelConfig config = common_config(keys, architecture);
  config.part_order = PartOrder::kParallelOneNorm;
  config.logit_scale = scale_of(keys, "logit_scale");
  if (has_tensor(keys, "blk.0.attn_q_norm.weight")) config.head_norms = HeadNorms::kOwn;
  return config;
}

ModelConfig granite_config(GgufKeys& keys, const Architecture& architecture) {
  keys.expect_flag("rope.scaling.finetuned", true, "heed's Granite turns queries and keys");
  ModelConfig config = common_config(keys, architecture);
  config.embedding_scale = scale_of(keys, "embedding_scale");
  config.attention_scale = scale_of(keys, "attention.scale");
  config.residual_scale = scale_of(keys, "residual_scale");
  config.logit_scale = 1 / scale_of(keys, "logit_scale");
  return config;
}

// Phi-3's windows, of which llama.cpp makes none, are those of the model. 0 in the file stands for
// none.
ModelConfig phi3_config(GgufKeys& keys, const Architecture& architecture) {
  ModelConfig config = common_config(keys, architecture);
  constexpr const char* kWindow = "attention.sliding_window";
  if (keys.integer(kWindow, 0) == 0) return config;
  for (LayerConfig& layer : config.layers) layer.window = keys.size(kWindow);
  return config;
}

ModelConfig bloom_config(GgufKeys& keys, const Architecture& architecture) {
  ModelConfig config = common_config(keys, architecture);
  config.has_alibi = true;
  return config;
}

constexpr Biases kInputBiases{.inputs = true};
constexpr Biases kLayerBiases{.inputs = true, .output = true, .feed_forward = true, .norms = true};
constexpr Biases kPhiBiases{
    .inputs = true, .output = true, .feed_forward = true, .norms = true, .head = true};
constexpr Biases kProductBiases{.inputs = true, .output = true, .feed_forward = true};

constexpr Architecture kArchitectures[] = {
    {.name = "llama",
     .family = Family::kLlama,
     .rotary = Rotary::kNeighbours,
     .possible_biases = kProductBiases},
    {.name = "qwen2",
     .family = Family::kLlama,
     .biases = kInputBiases,
     .possible_biases = kProductBiases},
    {.name = "qwen3", .family = Family::kQwen3, .head_norms = HeadNorms::kShared},
    {.name = "olmo2",
     .family = Family::kOlmo2,
     .head_norms = HeadNorms::kAllHeads,
     .read = olmo2_config},
    {.name = "smollm3",
     .family = Family::kSmolLm3,
     .rotary = Rotary::kNeighbours,
     .read = smollm3_config},
    {.name = "gemma2",
     .family = Family::kGemma2,
     .activation = Activation::kGeluTanh,
     .read = gemma_config},
    {.name = "gemma3",
     .family = Family::kGemma3,
     .head_norms = HeadNorms::kShared,
     .activation = Activation::kGeluTanh,
     .read = gemma_config},
    {.name = "granite",
     .family = Family::kGranite,
     .rotary = Rotary::kNeighbours,
     .possible_biases = kProductBiases,
     .read = granite_config},
    {.name = "phi3", .family = Family::kPhi3, .turns_parts = true, .read = phi3_config},
    {.name = "phi2",
     .family = Family::kPhi,
     .turns_parts = true,
     .norms = NormKind::kLayer,
     .activation = Activation::kGeluTanh,
     .biases = kPhiBiases,
     .read = phi2_config},
    {.name = "gptneox",
     .family = Family::kGptNeoX,
     .has_plain_heads = true,
     .turns_parts = true,
     .norms = NormKind::kLayer,
     .activation = Activation::kGelu,
     .biases = kLayerBiases,
     .read = gptneox_config},
    {.name = "stablelm",
     .family = Family::kStableLm,
     .turns_parts = true,
     .order_key_counts = false,
     .norms = NormKind::kLayer,
     .biases = {.norms = true},
     .possible_biases = kInputBiases,
     .read = stablelm_config},
    {.name = "starcoder2",
     .family = Family::kStarCoder2,
     .norms = NormKind::kLayer,
     .activation = Activation::kGeluTanh,
     .biases = kLayerBiases},
    {.name = "command-r",
     .family = Family::kCohere,
     .rotary = Rotary::kNeighbours,
     .norms = NormKind::kLayer,
     .read = command_r_config},
    {.name = "falcon",
     .family = Family::kFalcon,
     .norms = NormKind::kLayer,
     .activation = Activation::kGelu,
     .biases = {.norms = true},
     .read = falcon_config},
    {.name = "bloom",
     .family = Family::kBloom,
     .has_plain_heads = true,
     .rotary = Rotary::kNone,
     .norms = NormKind::kLayer,
     .activation = Activation::kGeluTanh,
     .biases = kLayerBiases,
     .read = bloom_config},
    {.name = "gpt2",
     .family = Family::kGpt2,
     .has_plain_heads = true,
     .rotary = Rotary::kNone,
     .norms = NormKind::kLayer,
     .activation = Activation::kGeluTanh,
     .biases = kLayerBiases},
    {.name = "bert",
     .family = Family::kBert,
     .has_plain_heads = true,
     .sees_later_tokens = true,
     .rotary = Rotary::kNone,
     .norms = NormKind::kLayer,
     .activation = Activation::kGelu,
     .biases = kLayerBiases}};

// The products that have biases: those that the architecture requires, and those that the first
// layer has. Other biases are tensors without use, which WeightReader refuses.
Biases biases_of(const GgufFile& file, const Architecture& architecture) {
  Biases biases = architecture.biases;
  const Biases& possible = architecture.possible_biases;
  const auto has = [&](const char* name) { return file.tensors().contains(name); };
  biases.inputs |= possible.inputs && has("blk.0.attn_q.bias");
  biases.output |= possible.output && has("blk.0.attn_output.bias");
  biases.feed_forward |= possible.feed_forward && has("blk.0.ffn_down.bias");
  return biases;
}

ModelConfig config_of(GgufKeys& keys) {
  const std::string& name = keys.file().string("general.architecture");
  std::string names;
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) {
      ModelConfig config = architecture.read(keys, architecture);
      config.biases = biases_of(keys.file(), architecture);
      if (architecture.order_key_counts) {
        keys.expect_flag("use_parallel_residual", config.part_order != PartOrder::kInTurn,
                         "the parts of the architecture's layers are so");
      } else {
        keys.ignore("use_parallel_residual");
      }
      return config;
    }
    if (!names.empty()) names += &architecture == std::end(kArchitectures) - 1 ? " or " : ", ";
    names += architecture.name;
  }
  GgufKeys(keys.file(), "general.").fail("architecture", names);
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

}  // namespace

ModelConfig read_config(const GgufFile& file) {
  check_kind_of_file(file);
  GgufKeys keys(file, file.string("general.architecture") + ".");
  ModelConfig config = config_of(keys);
  config.pooling = pooling_of(keys);
  keys.expect_flag("attention.causal", config.is_causal(),
                   "heed's models of this architecture see no other tokens");
  for (const auto& [name, value, reason] : kGgufIdleKeys) keys.expect_number(name, value, reason);
  for (const auto& [name, reason] : kGgufIgnoredKeys) keys.ignore(name);
  read_table_sizes(keys, config);
  keys.refuse_others();
  read_gguf_divisors(file, config);
  config.end_ids = end_ids_of(file);
  check_config(config, file.name());
  return config;
}

}}}  // namespace heed::v0::models
