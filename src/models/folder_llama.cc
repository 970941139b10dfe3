// The configuration of Llama and of the families that are variations of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/folder_families.h"
#include "models/folder_kind.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

std::int64_t kv_heads_of(ConfigFields& fields, const Kind& kind, std::int64_t num_heads) {
  if (kind.has_plain_heads) return num_heads;
  const bool is_missing = !fields.has("num_key_value_heads") && kind.num_kv_heads > 0;
  return fields.integer_or("num_key_value_heads", is_missing ? kind.num_kv_heads : num_heads);
}

std::int64_t head_dim_of(ConfigFields& fields, const Kind& kind, const ModelConfig& config) {
  if (kind.has_plain_heads) return divided(fields, config.hidden_size, config.num_heads);
  if (fields.find("head_dim")) return fields.integer("head_dim");
  if (kind.head_dim > 0) return kind.head_dim;
  return divided(fields, config.hidden_size, config.num_heads);
}

Biases biases_of(ConfigFields& fields, BiasRule rule) {
  constexpr std::string_view kWhy = "a model of this type has it so";
  if (rule == BiasRule::kOwn) return {};
  if (rule != BiasRule::kRead) fields.expect("mlp_bias", false, kWhy);
  if (rule == BiasRule::kInputs || rule == BiasRule::kNone) {
    fields.expect("attention_bias", rule == BiasRule::kInputs, kWhy);
    return {.inputs = rule == BiasRule::kInputs};
  }
  const bool has_biases = fields.boolean_or("attention_bias", false);
  return {.inputs = has_biases,
          .output = has_biases,
          .feed_forward = rule == BiasRule::kRead && fields.boolean_or("mlp_bias", false)};
}

std::optional<std::int64_t> window_size(ConfigFields& fields, const Kind& kind) {
  if (const auto found = fields.find("sliding_window")) return found->integer();
  if (!fields.has("sliding_window") && kind.window > 0) return kind.window;
  return std::nullopt;
}

// The window of all layers: a Mistral has it if the file says its size; other models without typed
// layers have none.
std::optional<std::int64_t> common_window(ConfigFields& fields, const Kind& kind,
                                          const ModelConfig& config) {
  const bool has_windows = kind.windows == WindowRule::kAll;
  const std::optional<std::int64_t> size = window_size(fields, kind);
  const bool is_used = fields.boolean_or("use_sliding_window", true) && size;
  const std::int64_t all = std::max<std::int64_t>(config.num_layers, 0);
  const std::int64_t first = fields.integer_or("max_window_layers", 0);
  std::int64_t layers = is_used ? all - std::clamp<std::int64_t>(first, 0, all) : 0;
  if (const auto sliding = sliding_layers(fields, config)) {
    layers = std::count(sliding->begin(), sliding->end(), true);
  }
  if (layers == 0 && !(has_windows && size)) return std::nullopt;
  if (is_used && layers == config.num_layers && has_windows) return size;
  fields.json().fail(fmt::format(
      ": sliding_window is {}, use_sliding_window {}, and {} of {} layers have the window by "
      "max_window_layers or layer_types; heed computes {} models with {}",
      size.value_or(0), is_used, layers, config.num_layers, kind.name,
      has_windows ? "one window in all layers or none" : "no window"));
}

// The window of all layers of Qwen3 with experts, which reads no max_window_layers.
std::optional<std::int64_t> asked_window(ConfigFields& fields, const Kind& kind) {
  fields.find("max_window_layers");
  const std::optional<std::int64_t> size = window_size(fields, kind);
  return fields.boolean_or("use_sliding_window", false) ? size : std::nullopt;
}

// The windows of Qwen's layers: those from max_window_layers on, unless layer_types names others.
void read_typed_windows(ConfigFields& fields, const Kind& kind, ModelConfig& config) {
  const std::optional<std::int64_t> said = window_size(fields, kind);
  const bool is_used = fields.boolean_or("use_sliding_window", false);
  const auto size = is_used ? said : std::nullopt;
  const std::int64_t first = fields.integer_or("max_window_layers", 28);
  const auto sliding = sliding_layers(fields, config);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    LayerConfig& layer = config.layers[i];
    const bool is_default =
        config.family == Family::kSmolLm3 ? !layer.rotary : std::cmp_greater_equal(i, first);
    const bool is_sliding = sliding ? (*sliding)[i] : size && is_default;
    if (is_sliding) layer.window = needed_window(fields, size);
  }
}

}  // namespace

ModelConfig kind_config(ConfigFields& fields, const Kind& kind) {
  fields.expect("rope_interleaved", false, "heed turns the halves of heads");
  ModelConfig config{.family = kind.family,
                     .part_order = kind.part_order,
                     .norms = kind.norms,
                     .head_norms = kind.head_norms};
  config.num_layers = fields.integer("num_hidden_layers");
  config.num_heads = fields.integer("num_attention_heads");
  config.num_kv_heads = kv_heads_of(fields, kind, config.num_heads);
  config.hidden_size = fields.integer("hidden_size");
  config.head_dim = head_dim_of(fields, kind, config);
  config.intermediate_size = fields.integer("intermediate_size");
  config.max_positions = fields.integer_or("max_position_embeddings", kind.max_positions);
  config.norm_epsilon = fields.number_or(kind.epsilon_key, kind.epsilon);
  config.activation = activation_named(fields, "hidden_act", kind.activation);
  config.biases = biases_of(fields, kind.biases);
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", kind.is_tied);
  config.rotaries = {read_rotary(fields, config, kind.rotary)};
  config.layers = equal_layers(config);
  if (kind.read_own != nullptr) kind.read_own(fields, config);
  if (kind.windows == WindowRule::kTyped) {
    read_typed_windows(fields, kind, config);
  } else {
    const auto window = kind.windows == WindowRule::kAsked ? asked_window(fields, kind)
                                                           : common_window(fields, kind, config);
    for (LayerConfig& layer : config.layers) layer.window = window;
  }
  return config;
}

}}}  // namespace heed::v0::models
