// The families that are variations of Llama.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "models/folder_families.h"
#include "models/folder_kind.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// SmolLM3 leaves out the rotary embedding of layers whose number in no_rope_layers is 0: by
// default of every fourth one.
void read_smollm3(ConfigFields& fields, ModelConfig& config) {
  const std::int64_t interval = fields.integer_or("no_rope_layer_interval", 4);
  const auto found = fields.find("no_rope_layers");
  const std::vector<io::JsonPart> items = found ? found->items() : std::vector<io::JsonPart>();
  if (found && std::ssize(items) < config.num_layers) {
    found->fail(fmt::format(" has {} numbers, expected one for each of {} layers", items.size(),
                            config.num_layers));
  }
  if (!found && interval < 1) {
    fields.json().fail(
        fmt::format(": no_rope_layer_interval is {}, expected at least 1", interval));
  }
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const bool has_rotary =
        found ? items[i].integer() != 0 : (static_cast<std::int64_t>(i) + 1) % interval != 0;
    if (!has_rotary) config.layers[i].rotary = std::nullopt;
  }
}

void read_gpt_neox(ConfigFields& fields, ModelConfig& config) {
  const bool has_biases = fields.boolean_or("attention_bias", true);
  config.biases = {.inputs = has_biases, .output = has_biases, .feed_forward = true, .norms = true};
  const bool is_parallel = fields.boolean_or("use_parallel_residual", true);
  config.part_order = is_parallel ? PartOrder::kParallel : PartOrder::kInTurn;
  // Some versions of transformers wrote these beside the names that count.
  constexpr std::string_view kOtherName = "rotary_emb_base and rotary_pct are the ones that count";
  fields.expect("rope_theta", fields.number_or("rotary_emb_base", 10000), kOtherName);
  fields.expect("partial_rotary_factor", fields.number_or("rotary_pct", 0.25), kOtherName);
}

void read_phi(ConfigFields& fields, ModelConfig& config) {
  config.biases = kAllBiases;
  config.biases.head = true;
  fields.expect("qk_layernorm", false, "heed's Phi has no norms of queries and keys");
}

void read_phi3(ConfigFields& fields, ModelConfig& /*config*/) {
  fields.expect("lm_head_bias", false, "the head of Phi-3 has no bias");
  fields.expect("full_attn_mod", std::int64_t{1}, "all layers of Phi-3 are alike");
  fields.expect("interpolate_factor", std::int64_t{1}, "positions of Phi-3 are whole numbers");
}

void read_granite(ConfigFields& fields, ModelConfig& config) {
  config.embedding_scale = fields.number_or("embedding_multiplier", 1);
  config.attention_scale = fields.number_or("attention_multiplier", 1);
  config.residual_scale = fields.number_or("residual_multiplier", 1);
  config.logit_scale = 1 / fields.number_or("logits_scaling", 1);
}

void read_stablelm(ConfigFields& fields, ModelConfig& config) {
  config.biases = {.inputs = fields.boolean_or("use_qkv_bias", false), .norms = true};
  if (fields.boolean_or("qk_layernorm", false)) config.head_norms = HeadNorms::kOwn;
  if (fields.boolean_or("use_parallel_residual", false)) {
    config.part_order = PartOrder::kParallelOneNorm;
  }
}

void read_starcoder2(ConfigFields& fields, ModelConfig& config) {
  const bool has_biases = fields.boolean_or("use_bias", true);
  config.biases = {
      .inputs = has_biases, .output = has_biases, .feed_forward = has_biases, .norms = true};
  fields.expect("norm_type", "layer_norm", "heed's StarCoder2 has layer norms");
  fields.expect("mlp_type", "default", "heed's StarCoder2 has a feed-forward layer without a gate");
  // transformers reads hidden_act.
  fields.find("activation_function");
}

// Two names of a number; `otherwise` if both are missing.
std::int64_t number_of_experts(ConfigFields& fields, std::int64_t otherwise) {
  constexpr const char* kName = "num_experts";
  constexpr const char* kOther = "num_local_experts";
  return fields.has(kName) || fields.has(kOther) ? either_size(fields, kName, kOther) : otherwise;
}

constexpr std::string_view kWithoutEffectInExperts[] = {
    // Training, and what calls return.
    "output_router_logits", "router_aux_loss_coef", "router_jitter_noise"};

void read_mixtral(ConfigFields& fields, ModelConfig& config) {
  fields.ignore(kWithoutEffectInExperts);
  config.experts = Experts{.count = number_of_experts(fields, 8),
                           .per_token = fields.integer_or("num_experts_per_tok", 2),
                           .intermediate_size = config.intermediate_size,
                           .has_weights_of_sum_1 = true};
  for (LayerConfig& layer : config.layers) layer.has_experts = true;
}

// Every decoder_sparse_step-th layer has experts, but for those of mlp_only_layers.
void read_qwen3_moe(ConfigFields& fields, ModelConfig& config) {
  fields.ignore(kWithoutEffectInExperts);
  const Experts experts{.count = number_of_experts(fields, 128),
                        .per_token = fields.integer_or("num_experts_per_tok", 8),
                        .intermediate_size = fields.integer_or("moe_intermediate_size", 768),
                        .has_weights_of_sum_1 = fields.boolean_or("norm_topk_prob", false)};
  const std::int64_t step = fields.integer_or("decoder_sparse_step", 1);
  if (step < 1) {
    fields.json().fail(fmt::format(": decoder_sparse_step is {}, expected at least 1", step));
  }
  std::set<std::int64_t> plain;
  if (const auto found = fields.find("mlp_only_layers")) {
    for (const io::JsonPart& layer : found->items()) plain.insert(layer.integer());
  }
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    config.layers[i].has_experts =
        experts.count != 0 && !plain.contains(index) && (index + 1) % step == 0;
    if (config.layers[i].has_experts) config.experts = experts;
  }
}

void read_cohere(ConfigFields& fields, ModelConfig& config) {
  config.logit_scale = fields.number_or("logit_scale", 0.0625);
  if (fields.boolean_or("use_qk_norm", false)) config.head_norms = HeadNorms::kOwn;
}

constexpr Kind kKinds[] = {
    {.name = "llama"},
    {.name = "mistral",
     .max_positions = 131072,
     .num_kv_heads = 8,
     .window = 4096,
     .biases = BiasRule::kNone,
     .windows = WindowRule::kAll},
    {.name = "qwen2",
     .max_positions = 32768,
     .num_kv_heads = 32,
     .window = 4096,
     .biases = BiasRule::kInputs,
     .windows = WindowRule::kTyped},
    {.name = "qwen3",
     .family = Family::kQwen3,
     .max_positions = 32768,
     .num_kv_heads = 32,
     .head_dim = 128,
     .window = 4096,
     .head_norms = HeadNorms::kShared,
     .biases = BiasRule::kReadAttention,
     .windows = WindowRule::kTyped},
    {.name = "olmo2",
     .family = Family::kOlmo2,
     .epsilon = 1e-5,
     .head_norms = HeadNorms::kAllHeads,
     .biases = BiasRule::kReadAttention},
    {.name = "smollm3",
     .family = Family::kSmolLm3,
     .max_positions = 32768,
     .num_kv_heads = 4,
     .is_tied = true,
     .windows = WindowRule::kTyped,
     .rotary = {.base = 2000000},
     .read_own = read_smollm3},
    {.name = "granite", .family = Family::kGranite, .read_own = read_granite},
    {.name = "phi3",
     .family = Family::kPhi3,
     .max_positions = 4096,
     .epsilon = 1e-5,
     .biases = BiasRule::kNone,
     .windows = WindowRule::kAll,
     .rotary = {.fraction = 1, .long_rope_from = 4096},
     .read_own = read_phi3},
    {.name = "phi",
     .family = Family::kPhi,
     .epsilon = 1e-5,
     .epsilon_key = "layer_norm_eps",
     .activation = "gelu_new",
     .norms = NormKind::kLayer,
     .part_order = PartOrder::kParallelOneNorm,
     .biases = BiasRule::kOwn,
     .rotary = {.fraction = 0.5},
     .read_own = read_phi},
    {.name = "gpt_neox",
     .family = Family::kGptNeoX,
     .epsilon = 1e-5,
     .has_plain_heads = true,
     .epsilon_key = "layer_norm_eps",
     .activation = "gelu",
     .norms = NormKind::kLayer,
     .biases = BiasRule::kOwn,
     .rotary = {.fraction = 0.25, .base_key = "rotary_emb_base", .fraction_key = "rotary_pct"},
     .read_own = read_gpt_neox},
    {.name = "stablelm",
     .family = Family::kStableLm,
     .max_positions = 4096,
     .num_kv_heads = 32,
     .epsilon = 1e-5,
     .epsilon_key = "layer_norm_eps",
     .norms = NormKind::kLayer,
     .biases = BiasRule::kOwn,
     .rotary = {.fraction = 0.25},
     .read_own = read_stablelm},
    {.name = "starcoder2",
     .family = Family::kStarCoder2,
     .max_positions = 4096,
     .num_kv_heads = 2,
     .epsilon = 1e-5,
     .is_tied = true,
     .epsilon_key = "norm_epsilon",
     .activation = "gelu_pytorch_tanh",
     .norms = NormKind::kLayer,
     .biases = BiasRule::kOwn,
     .windows = WindowRule::kAll,
     .read_own = read_starcoder2},
    {.name = "mixtral",
     .family = Family::kMixtral,
     .max_positions = 131072,
     .num_kv_heads = 8,
     .epsilon = 1e-5,
     .biases = BiasRule::kNone,
     .windows = WindowRule::kAll,
     .rotary = {.base = 1000000},
     .read_own = read_mixtral},
    {.name = "qwen3_moe",
     .family = Family::kQwen3Moe,
     .max_positions = 32768,
     .num_kv_heads = 4,
     .window = 4096,
     .head_norms = HeadNorms::kShared,
     .biases = BiasRule::kReadAttention,
     .windows = WindowRule::kAsked,
     .read_own = read_qwen3_moe},
    {.name = "cohere",
     .family = Family::kCohere,
     .max_positions = 8192,
     .epsilon = 1e-5,
     .is_tied = true,
     .epsilon_key = "layer_norm_eps",
     .norms = NormKind::kLayer,
     .part_order = PartOrder::kParallelOneNorm,
     .biases = BiasRule::kReadAttention,
     .rotary = {.base = 500000, .pairing = RotaryPairing::kNeighbours},
     .read_own = read_cohere}};

ModelConfig config_of_kind(ConfigFields& fields, std::string_view type) {
  return kind_config(fields, *std::find_if(std::begin(kKinds), std::end(kKinds),
                                           [&](const Kind& kind) { return kind.name == type; }));
}

}  // namespace

std::span<const FolderFamily> llama_like_families() {
  static const auto kFamilies = [] {
    std::array<FolderFamily, std::size(kKinds)> families{};
    std::transform(std::begin(kKinds), std::end(kKinds), families.begin(), [](const Kind& kind) {
      return FolderFamily{kind.name, config_of_kind};
    });
    return families;
  }();
  return kFamilies;
}

}}}  // namespace heed::v0::models
