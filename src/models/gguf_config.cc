// Configurations of GGUF files.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "heed/error.h"
#include "heed/models/checkpoint.h"
#include "heed/models/config.h"
#include "models/config_checks.h"

namespace heed::inline v0::models {

namespace {

// The metadata of a model, whose keys begin with its architecture's name.
class Metadata {
 public:
  explicit Metadata(const GgufFile& file)
      : file_(file), prefix_(file.string("general.architecture") + ".") {}

  std::string architecture() const { return prefix_.substr(0, prefix_.size() - 1); }
  bool contains(const char* key) const { return file_.contains(prefix_ + key); }
  std::int64_t integer(const char* key) const { return file_.integer(prefix_ + key); }
  std::int64_t integer(const char* key, std::int64_t otherwise) const {
    return contains(key) ? integer(key) : otherwise;
  }
  double number(const char* key) const { return file_.number(prefix_ + key); }
  double number(const char* key, double otherwise) const {
    return contains(key) ? number(key) : otherwise;
  }
  std::string string(const char* key, const std::string& otherwise) const {
    return contains(key) ? file_.string(prefix_ + key) : otherwise;
  }
  [[noreturn]] void fail(const std::string& problem) const {
    throw FormatError(file_.name(), 0, problem);
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

// The sizes that every architecture has.
ModelConfig sizes_of(const Metadata& metadata, Family family) {
  ModelConfig config{.family = family, .architecture = metadata.architecture()};
  config.num_layers = metadata.integer("block_count");
  config.hidden_size = metadata.integer("embedding_length");
  config.intermediate_size = metadata.integer("feed_forward_length");
  config.max_positions = metadata.integer("context_length");
  config.num_heads = metadata.integer("attention.head_count");
  config.num_kv_heads = metadata.integer("attention.head_count_kv", config.num_heads);
  if (config.num_heads < 1 || config.hidden_size % config.num_heads != 0) {
    metadata.fail(fmt::format("{} heads do not divide a hidden size of {}", config.num_heads,
                              config.hidden_size));
  }
  config.head_dim = metadata.integer("attention.key_length", config.hidden_size / config.num_heads);
  return config;
}

RotaryScaling scaling_of(const Metadata& metadata, std::int64_t positions) {
  const std::string type = metadata.string("rope.scaling.type", "none");
  const std::int64_t original = metadata.integer("rope.scaling.original_context_length", positions);
  if (type == "none") return {};
  if (type == "linear") return LinearScaling{metadata.number("rope.scaling.factor")};
  if (type == "yarn") {
    return YarnScaling{.factor = metadata.number("rope.scaling.factor"),
                       .original_max_len = original};
  }
  metadata.fail(fmt::format("rope.scaling.type is \"{}\", expected none, linear or yarn", type));
}

// Files of the architecture "llama" hold the rows of query and key in the order in which
// neighbours are turned together, others as transformers has them.
ModelConfig llama_config(const Metadata& metadata, RotaryPairing pairing) {
  ModelConfig config = sizes_of(metadata, Family::kLlama);
  config.norm_epsilon = metadata.number("attention.layer_norm_rms_epsilon");
  config.activation = Activation::kSilu;
  RotaryPositions rotary{.base = metadata.number("rope.freq_base", 10000)};
  rotary.rotary_dim = metadata.integer("rope.dimension_count", config.head_dim);
  rotary.pairing = pairing;
  rotary.scaling = scaling_of(metadata, config.max_positions);
  config.rotary = std::move(rotary);
  if (metadata.contains("attention.sliding_window")) {
    config.window = metadata.integer("attention.sliding_window");
  }
  return config;
}

ModelConfig config_of(const Metadata& metadata) {
  const std::string architecture = metadata.architecture();
  if (architecture == "llama") return llama_config(metadata, RotaryPairing::kNeighbours);
  if (architecture == "qwen2") return llama_config(metadata, RotaryPairing::kHalves);
  if (architecture == "gpt2") {
    ModelConfig config = sizes_of(metadata, Family::kGpt2);
    config.norm_epsilon = metadata.number("attention.layer_norm_epsilon");
    config.activation = Activation::kGeluTanh;
    return config;
  }
  if (architecture == "bert") {
    ModelConfig config = sizes_of(metadata, Family::kBert);
    config.norm_epsilon = metadata.number("attention.layer_norm_epsilon");
    config.activation = Activation::kGelu;
    return config;
  }
  metadata.fail(fmt::format("general.architecture is \"{}\", expected llama, qwen2, gpt2 or bert",
                            architecture));
}

std::int64_t rows_of(const GgufFile& file, const char* tensor) {
  const auto found = file.tensors().find(tensor);
  if (found == file.tensors().end() || found->second.shape.rank() != 2) {
    throw FormatError(file.name(), 0, fmt::format("tensor {} [rows, columns] is missing", tensor));
  }
  return found->second.shape[0];
}

constexpr const char* kDivisors = "rope_freqs.weight";

// Llama 3's scaling, computed by whoever made the file: the frequency of each pair is divided by
// one of these numbers. Source: ggml, ggml_rope_ext (freq_factors).
void read_divisors(const GgufFile& file, ModelConfig& config) {
  if (!file.tensors().contains(kDivisors)) return;
  const auto fail = [&](const std::string& problem) {
    throw FormatError(file.name(), 0, fmt::format("tensor {} {}", kDivisors, problem));
  };
  if (!config.rotary) fail("scales rotary frequencies, which the architecture lacks");
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

}  // namespace

ModelConfig read_config(const GgufFile& file) {
  ModelConfig config = config_of(Metadata(file));
  config.vocab_size = rows_of(file, "token_embd.weight");
  config.has_tied_head = !file.tensors().contains("output.weight");
  if (config.family == Family::kBert && file.tensors().contains("token_types.weight")) {
    config.num_token_types = rows_of(file, "token_types.weight");
  }
  read_divisors(file, config);
  if (file.contains("tokenizer.ggml.eos_token_id")) {
    config.end_ids.push_back(file.integer("tokenizer.ggml.eos_token_id"));
  }
  check_config(config, file.name());
  return config;
}

}  // namespace heed::inline v0::models
