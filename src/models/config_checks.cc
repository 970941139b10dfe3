#include "models/config_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// Far above every existing model; products of any three sizes fit into 63 bits.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;
constexpr std::int64_t kMaxLayers = 4096;

void check_size(const std::string& file, const char* name, std::int64_t size, std::int64_t most) {
  if (size >= 1 && size <= most) return;
  throw FormatError(file, 0, fmt::format("{} is {}, expected 1 to {}", name, size, most));
}

}  // namespace

std::string_view to_string(Family family) {
  switch (family) {
    case Family::kBert:
      return "bert";
    case Family::kGpt2:
      return "gpt2";
    case Family::kLlama:
      break;
  }
  return "llama";
}

void check_config(const ModelConfig& config, const std::string& file) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"the number of heads", config.num_heads},
      {"the number of key heads", config.num_kv_heads},
      {"the head dimension", config.head_dim},
      {"the hidden size", config.hidden_size},
      {"the intermediate size", config.intermediate_size}};
  for (const auto& [name, size] : sizes) check_size(file, name, size, kMaxSize);
  check_size(file, "the number of layers", config.num_layers, kMaxLayers);
  check_size(file, "the vocabulary's size", config.vocab_size, kMaxSize * 16);
  check_size(file, "the number of positions", config.max_positions, kMaxSize * 64);
  if (config.window) check_size(file, "the window", *config.window, kMaxSize * 64);
  if (config.num_heads % config.num_kv_heads != 0) {
    throw FormatError(
        file, 0,
        fmt::format("{} heads cannot share {} key heads", config.num_heads, config.num_kv_heads));
  }
  if (!(config.norm_epsilon >= 0 && std::isfinite(config.norm_epsilon))) {
    throw FormatError(file, 0, fmt::format("the norms' epsilon is {}", config.norm_epsilon));
  }
  if (!config.rotary) return;
  const std::int64_t dim = config.rotary->rotary_dim;
  if (dim < 0 || dim > config.head_dim || dim % 2 != 0) {
    throw FormatError(
        file, 0,
        fmt::format("{} dimensions of {} cannot be turned in pairs", dim, config.head_dim));
  }
  try {
    rotary_frequencies(dim, config.rotary->base, config.rotary->scaling, config.max_positions);
  } catch (const InvalidArgument& error) {
    throw FormatError(file, 0, error.what());
  }
}

}}}  // namespace heed::v0::models
