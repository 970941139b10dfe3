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
#include "models/gguf_architectures.h"
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
constexpr const char* kNoExperts = "heed has no such experts";
constexpr std::array kGgufIdleKeys{GgufIdleKey{"expert_shared_count", 0, kNoExperts},
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

// llama.cpp divides the weights of a token's experts by their sum.
void read_experts(GgufKeys& keys, const Architecture& architecture, ModelConfig& config) {
  constexpr const char* kCount = "expert_count";
  constexpr const char* kUsed = "expert_used_count";
  constexpr const char* kSize = "expert_feed_forward_length";
  const bool must = architecture.experts == ExpertRule::kAlways;
  const bool may = must || architecture.experts == ExpertRule::kPossible;
  if (!may || (!must && keys.integer(kCount, 0) == 0)) {
    keys.expect_number(kCount, 0, "heed has no experts of this architecture");
    keys.expect_number(kUsed, 0, "there are no experts");
    return;
  }
  config.experts = Experts{.count = keys.size(kCount),
                           .per_token = keys.size(kUsed),
                           .intermediate_size = config.intermediate_size,
                           .has_weights_of_sum_1 = true};
  if (config.experts->per_token > config.experts->count) {
    keys.fail(kUsed, fmt::format("at most {}, {}", keys.name_of(kCount), config.experts->count));
  }
  if (must) {
    config.experts->intermediate_size =
        keys.has(kSize) ? keys.size(kSize) : config.intermediate_size / config.experts->per_token;
  } else {
    config.family = Family::kMixtral;
  }
  for (LayerConfig& layer : config.layers) layer.has_experts = true;
}

ModelConfig config_of(GgufKeys& keys) {
  const std::string& name = keys.file().string("general.architecture");
  std::string names;
  for (const Architecture& architecture : architectures()) {
    if (architecture.name == name) {
      ModelConfig config = architecture.read(keys, architecture);
      config.biases = biases_of(keys.file(), architecture);
      read_experts(keys, architecture, config);
      if (architecture.order_key_counts) {
        keys.expect_flag("use_parallel_residual", config.part_order != PartOrder::kInTurn,
                         "the parts of the architecture's layers are so");
      } else {
        keys.ignore("use_parallel_residual");
      }
      return config;
    }
    if (!names.empty()) names += &architecture == &architectures().back() ? " or " : ", ";
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

double epsilon_of(GgufKeys& keys, const char* key) {
  const double epsilon = keys.number(key);
  if (!(epsilon >= 0 && std::isfinite(epsilon))) keys.fail(key, "a number, at least 0");
  return epsilon;
}

}  // namespace

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
