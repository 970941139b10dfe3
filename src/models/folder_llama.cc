// Llama and the families that differ from it in few settings. The defaults of missing members are
// those of the configuration classes of transformers 5.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/folder_families.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// The biases that a family has.
enum class BiasRule {
  kRead,           // attention_bias and mlp_bias say
  kReadAttention,  // attention_bias says; the feed-forward layer has none
  kInputs,         // of query, key and value alone
  kNone,
};

// The layers that have a window.
enum class WindowRule {
  kNone,
  kAll,    // all if there is sliding_window
  kTyped,  // those that layer_types or max_window_layers names, if use_sliding_window is true
};

// What the families differ in. Missing numbers have these values; 0 stands for the general one.
struct Kind {
  std::string_view name;
  Family family = Family::kLlama;
  std::int64_t max_positions = 2048;
  std::int64_t num_kv_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;      // 0: hidden_size / num_heads
  std::int64_t window = 0;        // 0: none
  double epsilon = 1e-6;
  double rotary_base = 10000;
  bool is_tied = false;
  BiasRule biases = BiasRule::kRead;
  WindowRule windows = WindowRule::kNone;
  HeadNorms head_norms = HeadNorms::kNone;
};
constexpr Kind kKinds[] = {{.name = "llama"},
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
                            .biases = BiasRule::kReadAttention,
                            .windows = WindowRule::kTyped,
                            .head_norms = HeadNorms::kShared},
                           {.name = "olmo2",
                            .family = Family::kOlmo2,
                            .epsilon = 1e-5,
                            .biases = BiasRule::kReadAttention,
                            .head_norms = HeadNorms::kAllHeads},
                           {.name = "smollm3",
                            .family = Family::kSmolLm3,
                            .max_positions = 32768,
                            .num_kv_heads = 4,
                            .rotary_base = 2000000,
                            .is_tied = true,
                            .windows = WindowRule::kTyped}};

std::int64_t kv_heads_of(ConfigFields& fields, const Kind& kind, std::int64_t num_heads) {
  const bool is_missing = !fields.has("num_key_value_heads") && kind.num_kv_heads > 0;
  return fields.integer_or("num_key_value_heads", is_missing ? kind.num_kv_heads : num_heads);
}

std::int64_t head_dim_of(ConfigFields& fields, const Kind& kind, const ModelConfig& config) {
  if (fields.find("head_dim")) return fields.integer("head_dim");
  if (kind.head_dim > 0) return kind.head_dim;
  return divided(fields, config.hidden_size, config.num_heads);
}

Biases biases_of(ConfigFields& fields, BiasRule rule) {
  constexpr std::string_view kWhy = "a model of this type has it so";
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

// SmolLM3 leaves out the rotary embedding of layers whose number in no_rope_layers is 0: by
// default of every fourth one.
void read_layers_without_rotary(ConfigFields& fields, ModelConfig& config) {
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

ModelConfig config_of(ConfigFields& fields, const Kind& kind) {
  fields.expect("rope_interleaved", false, "heed turns the halves of heads");
  ModelConfig config{.family = kind.family, .head_norms = kind.head_norms};
  config.num_layers = fields.integer("num_hidden_layers");
  config.num_heads = fields.integer("num_attention_heads");
  config.num_kv_heads = kv_heads_of(fields, kind, config.num_heads);
  config.hidden_size = fields.integer("hidden_size");
  config.head_dim = head_dim_of(fields, kind, config);
  config.intermediate_size = fields.integer("intermediate_size");
  config.max_positions = fields.integer_or("max_position_embeddings", kind.max_positions);
  config.norm_epsilon = fields.number_or("rms_norm_eps", kind.epsilon);
  config.activation = activation_named(fields, "hidden_act", "silu");
  config.biases = biases_of(fields, kind.biases);
  config.has_tied_head = fields.boolean_or("tie_word_embeddings", kind.is_tied);
  config.rotaries = {read_rotary(fields, config, {.base = kind.rotary_base})};
  config.layers = equal_layers(config);
  if (kind.family == Family::kSmolLm3) read_layers_without_rotary(fields, config);
  if (kind.windows == WindowRule::kTyped) {
    read_typed_windows(fields, kind, config);
  } else {
    const auto window = common_window(fields, kind, config);
    for (LayerConfig& layer : config.layers) layer.window = window;
  }
  return config;
}

ModelConfig kind_config(ConfigFields& fields, std::string_view type) {
  return config_of(fields, *std::find_if(std::begin(kKinds), std::end(kKinds),
                                         [&](const Kind& kind) { return kind.name == type; }));
}

}  // namespace

std::span<const FolderFamily> llama_like_families() {
  static const auto kFamilies = [] {
    std::array<FolderFamily, std::size(kKinds)> families{};
    std::transform(std::begin(kKinds), std::end(kKinds), families.begin(), [](const Kind& kind) {
      return FolderFamily{kind.name, kind_config};
    });
    return families;
  }();
  return kFamilies;
}

}}}  // namespace heed::v0::models
