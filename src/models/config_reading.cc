#include "models/config_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/printable.h"
#include "heed/attention/relative_position.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// A value as it stands in the file, if it is short.
std::string shown_value(const io::JsonValue& value) {
  switch (value.kind) {
    case io::JsonKind::kNull:
      return "null";
    case io::JsonKind::kBoolean:
      return value.boolean ? "true" : "false";
    case io::JsonKind::kInteger:
      return fmt::format("{}", value.integer);
    case io::JsonKind::kNumber:
      return fmt::format("{}", value.number);
    case io::JsonKind::kString:
      return fmt::format("\"{}\"", io::printable(value.text));
    case io::JsonKind::kArray:
      return value.items.empty() ? "[]" : fmt::format("an array of {}", value.items.size());
    case io::JsonKind::kObject:
      break;
  }
  return value.items.empty() ? "{}" : fmt::format("an object of {}", value.items.size());
}

bool is_nothing(const io::JsonValue& value) {
  switch (value.kind) {
    case io::JsonKind::kNull:
      return true;
    case io::JsonKind::kBoolean:
      return !value.boolean;
    case io::JsonKind::kInteger:
    case io::JsonKind::kNumber:
      return value.number == 0;
    case io::JsonKind::kString:
      return value.text.empty();
    case io::JsonKind::kArray:
    case io::JsonKind::kObject:
      break;
  }
  return value.items.empty();
}

}  // namespace

ConfigFields::ConfigFields(io::JsonPart object) : object_(std::move(object)) {
  if (!object_.is(io::JsonKind::kObject)) object_.fail(" is no object, expected one");
}

bool ConfigFields::has(std::string_view key) const {
  const auto& keys = object_.value().keys;
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::optional<io::JsonPart> ConfigFields::find(std::string_view key) {
  known_.emplace(key);
  return object_.find(key);
}

io::JsonPart ConfigFields::at(std::string_view key) {
  known_.emplace(key);
  return object_.at(key);
}

bool ConfigFields::boolean_or(std::string_view key, bool otherwise) {
  known_.emplace(key);
  return object_.boolean_or(key, otherwise);
}

std::int64_t ConfigFields::integer_or(std::string_view key, std::int64_t otherwise) {
  known_.emplace(key);
  return object_.integer_or(key, otherwise);
}

double ConfigFields::number_or(std::string_view key, double otherwise) {
  known_.emplace(key);
  return object_.number_or(key, otherwise);
}

std::string ConfigFields::string_or(std::string_view key, std::string_view otherwise) {
  known_.emplace(key);
  return object_.string_or(key, otherwise);
}

void ConfigFields::refuse(const io::JsonPart& found, std::string_view expected,
                          std::string_view why) {
  found.fail(fmt::format(" is {}, expected {}: {}", shown_value(found.value()), expected, why));
}

void ConfigFields::expect(std::string_view key, bool value, std::string_view why) {
  const auto found = find(key);
  if (found && found->boolean() != value) refuse(*found, value ? "true" : "false", why);
}

void ConfigFields::expect(std::string_view key, std::int64_t value, std::string_view why) {
  const auto found = find(key);
  if (found && found->number() != static_cast<double>(value)) {
    refuse(*found, fmt::format("{}", value), why);
  }
}

void ConfigFields::expect(std::string_view key, double value, std::string_view why) {
  const auto found = find(key);
  if (found && found->number() != value) refuse(*found, fmt::format("{}", value), why);
}

void ConfigFields::expect(std::string_view key, const char* value, std::string_view why) {
  const auto found = find(key);
  if (found && found->string() != value) refuse(*found, fmt::format("\"{}\"", value), why);
}

void ConfigFields::expect_nothing(std::string_view key, std::string_view why) {
  const auto found = find(key);
  if (found && !is_nothing(found->value())) refuse(*found, "nothing", why);
}

void ConfigFields::ignore(std::span<const std::string_view> keys) {
  known_.insert(keys.begin(), keys.end());
}

void ConfigFields::check_all_known() const {
  for (const std::string& key : object_.value().keys) {
    if (known_.contains(key)) continue;
    const auto found = object_.find(key);
    if (!found) continue;
    found->fail(
        fmt::format(" is {}, and heed does not know what it is for. Where it changes no result, "
                    "take it out of the file",
                    shown_value(found->value())));
  }
}

namespace {

// In the order of Family.
constexpr std::array kFamilyNames = std::to_array<std::string_view>(
    {"bert",    "roberta",   "distilbert", "gpt2",       "llama",     "qwen3",    "olmo2",
     "smollm3", "gemma2",    "gemma3",     "gpt_neox",   "gpt_neo",   "gptj",     "opt",
     "bloom",   "falcon",    "phi",        "phi3",       "granite",   "stablelm", "starcoder2",
     "mixtral", "qwen3_moe", "cohere",     "t5",         "t5_gated",  "bart",     "marian",
     "mpnet",   "electra",   "albert",     "modernbert", "nomic_bert"});
static_assert(kFamilyNames.size() == static_cast<std::size_t>(Family::kNomicBert) + 1);

// Far above every existing model; products of any three sizes fit into 63 bits.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;
constexpr std::int64_t kMaxLayers = 4096;

void check_size(const std::string& file, const char* name, std::int64_t size, std::int64_t most) {
  if (size >= 1 && size <= most) return;
  throw FormatError(file, 0, fmt::format("{} is {}, expected 1 to {}", name, size, most));
}

void check_positive(const std::string& file, const char* name, std::optional<double> value) {
  if (!value || (*value > 0 && std::isfinite(*value))) return;
  throw FormatError(file, 0, fmt::format("{} is {}, expected a positive number", name, *value));
}

void check_experts(const Experts& experts, const std::string& file) {
  check_size(file, "the number of experts", experts.count, kMaxLayers);
  check_size(file, "the number of experts of a token", experts.per_token, experts.count);
  check_size(file, "the intermediate size of experts", experts.intermediate_size, kMaxSize);
}

void check_rotary(const ModelConfig& config, const RotaryPositions& rotary,
                  const std::string& file) {
  const std::int64_t dim = rotary.rotary_dim;
  if (dim < 0 || dim > config.head_dim || dim % 2 != 0) {
    throw FormatError(
        file, 0,
        fmt::format("{} dimensions of {} cannot be turned in pairs", dim, config.head_dim));
  }
  try {
    rotary_frequencies(dim, rotary.base, rotary.scaling, config.max_positions);
  } catch (const InvalidArgument& error) {
    throw FormatError(file, 0, error.what());
  }
}

}  // namespace

std::string_view to_string(Family family) { return kFamilyNames[static_cast<std::size_t>(family)]; }

std::size_t num_layers_to_describe(const ModelConfig& config) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(config.num_layers, 0, kMaxLayers));
}

namespace {

void check_buckets(const ModelConfig& config, const std::string& file) {
  const auto& buckets = config.position_buckets;
  if (!buckets) return;
  try {
    RelativeBuckets::t5(buckets->count, buckets->max_distance, !config.is_causal());
  } catch (const InvalidArgument& error) {
    throw FormatError(file, 0, fmt::format("the buckets of positions: {}", error.what()));
  }
}

}  // namespace

void check_config(const ModelConfig& config, const std::string& file) {
  if (config.encoder) {
    check_config(*config.encoder, file);
    if (config.start_id < 0 || config.start_id >= config.vocab_size) {
      throw FormatError(file, 0,
                        fmt::format("decoder_start_token_id is {}, expected one of [0, {})",
                                    config.start_id, config.vocab_size));
    }
  }
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
  if (config.embedding_size) {
    check_size(file, "the embeddings' width", *config.embedding_size, kMaxSize);
  }
  for (const LayerConfig& layer : config.layers) {
    if (layer.window) check_size(file, "the window", *layer.window, kMaxSize * 64);
  }
  if (config.experts) check_experts(*config.experts, file);
  check_positive(file, "the scale of scores", config.attention_scale);
  check_positive(file, "the softcap of scores", config.score_softcap);
  check_positive(file, "the softcap of logits", config.logit_softcap);
  check_positive(file, "the scale of embeddings", config.embedding_scale);
  check_positive(file, "the scale of parts", config.residual_scale);
  check_positive(file, "the scale of logits", config.logit_scale);
  if (config.num_heads % config.num_kv_heads != 0) {
    throw FormatError(
        file, 0,
        fmt::format("{} heads cannot share {} key heads", config.num_heads, config.num_kv_heads));
  }
  if (!(config.norm_epsilon >= 0 && std::isfinite(config.norm_epsilon))) {
    throw FormatError(file, 0, fmt::format("the norms' epsilon is {}", config.norm_epsilon));
  }
  for (const RotaryPositions& rotary : config.rotaries) check_rotary(config, rotary, file);
  check_buckets(config, file);
}

}}}  // namespace heed::v0::models
