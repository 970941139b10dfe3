// What the readers of config.json share.
#include "models/folder_families.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::pair<std::string_view, Activation> kActivations[] = {
    {"gelu", Activation::kGelu},
    {"gelu_python", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_python_tanh", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_accurate", Activation::kGeluTanh},
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"relu", Activation::kRelu}};

}  // namespace

Activation activation_named(ConfigFields& fields, const char* key, const char* otherwise) {
  const std::string name = fields.string_or(key, otherwise);
  const auto* const found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                         [&](const auto& known) { return known.first == name; });
  if (found != std::end(kActivations)) return found->second;
  fields.json().fail(fmt::format(
      ": {} is \"{}\", expected gelu, gelu_new, gelu_pytorch_tanh, silu or relu", key, name));
}

std::int64_t either_size(ConfigFields& fields, const char* key, const char* other) {
  const auto second = fields.find(other);
  if (!second) return fields.integer(key);
  const std::int64_t size = second->integer();
  fields.expect(key, size, fmt::format("{} says so, which is the same", other));
  return size;
}

std::int64_t four_times(std::int64_t size) {
  return 4 * std::clamp<std::int64_t>(size, 0, 1 << 20);
}

std::int64_t divided(const ConfigFields& fields, std::int64_t dim, std::int64_t num_heads) {
  if (num_heads < 1 || dim % num_heads != 0) {
    fields.json().fail(fmt::format(": {} heads do not divide a hidden size of {}", num_heads, dim));
  }
  return dim / num_heads;
}

std::vector<LayerConfig> equal_layers(const ModelConfig& config) {
  LayerConfig layer;
  if (!config.rotaries.empty()) layer.rotary = 0;
  return std::vector<LayerConfig>(num_layers_to_describe(config), layer);
}

std::optional<std::vector<bool>> sliding_layers(ConfigFields& fields, const ModelConfig& config) {
  const auto types = fields.find("layer_types");
  if (!types) return std::nullopt;
  const std::vector<io::JsonPart> items = types->items();
  if (std::ssize(items) != config.num_layers) {
    types->fail(fmt::format(" has {} types, expected one for each of {} layers", items.size(),
                            config.num_layers));
  }
  std::vector<bool> sliding;
  for (const io::JsonPart& item : items) {
    sliding.push_back(item.string() == "sliding_attention");
    if (!sliding.back() && item.string() != "full_attention") {
      item.fail(
          fmt::format(" is \"{}\", expected full_attention or sliding_attention", item.string()));
    }
  }
  return sliding;
}

std::int64_t needed_window(const ConfigFields& fields, std::optional<std::int64_t> size) {
  if (size) return *size;
  fields.json().fail(
      ": a layer has type sliding_attention, but sliding_window is missing or not used; expected "
      "its number of positions");
}

}}}  // namespace heed::v0::models
