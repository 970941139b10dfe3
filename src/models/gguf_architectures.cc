// The architectures of GGUF files. Their keys have the meaning that llama.cpp gives them.
#include "models/gguf_architectures.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "models/config_reading.h"
#include "models/gguf_rotary.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

using io::GgufKeys;

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
     .experts = ExpertRule::kPossible,
     .possible_biases = kProductBiases},
    {.name = "qwen2",
     .family = Family::kLlama,
     .biases = kInputBiases,
     .possible_biases = kProductBiases},
    {.name = "qwen3", .family = Family::kQwen3, .head_norms = HeadNorms::kShared},
    {.name = "qwen3moe",
     .family = Family::kQwen3Moe,
     .experts = ExpertRule::kAlways,
     .head_norms = HeadNorms::kShared},
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

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

}}}  // namespace heed::v0::models
