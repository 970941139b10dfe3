#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "models/config_reading.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr const char* kOriginal = "original_max_position_embeddings";

std::vector<double> numbers_of(const io::JsonPart& array) {
  std::vector<double> numbers;
  for (const io::JsonPart& item : array.items()) numbers.push_back(item.number());
  return numbers;
}

std::optional<double> optional_number(ConfigFields& fields, const char* key) {
  const auto found = fields.find(key);
  return found ? std::optional(found->number()) : std::nullopt;
}

// Reads a number; 0 stands for the default, as in Python's `or`.
double number_but_zero(ConfigFields& fields, const char* key, double otherwise) {
  const double number = fields.number_or(key, otherwise);
  return number == 0 ? otherwise : number;
}

RotaryScaling yarn_of(ConfigFields& fields, std::int64_t original) {
  YarnScaling scaling{.factor = fields.number("factor"), .original_max_len = original};
  scaling.beta_fast = number_but_zero(fields, "beta_fast", scaling.beta_fast);
  scaling.beta_slow = number_but_zero(fields, "beta_slow", scaling.beta_slow);
  scaling.truncate = fields.boolean_or("truncate", scaling.truncate);
  scaling.attention_factor = optional_number(fields, "attention_factor");
  scaling.mscale = optional_number(fields, "mscale");
  scaling.mscale_all_dim = optional_number(fields, "mscale_all_dim");
  return scaling;
}

RotaryScaling long_rope_of(ConfigFields& fields, std::int64_t original, std::int64_t positions) {
  LongRopeScaling scaling{.short_factor = numbers_of(fields.at("short_factor")),
                          .long_factor = numbers_of(fields.at("long_factor")),
                          .original_max_len = original};
  const double ratio =
      static_cast<double>(positions) / static_cast<double>(std::max<std::int64_t>(original, 1));
  scaling.factor = fields.number_or("factor", ratio);
  scaling.attention_factor = optional_number(fields, "attention_factor");
  return scaling;
}

// The length that the model was trained on: from the configuration itself, otherwise from the
// rotary parameters.
std::int64_t original_length(ConfigFields& fields, ConfigFields& parameters,
                             std::int64_t positions) {
  const std::int64_t inside = parameters.integer_or(kOriginal, positions);
  return fields.integer_or(kOriginal, inside);
}

RotaryScaling scaling_of(ConfigFields& fields, ConfigFields& parameters, std::int64_t positions) {
  const std::string earlier = parameters.string_or("type", "default");
  const std::string type = parameters.string_or("rope_type", earlier);
  if (type == "default") return {};
  if (type == "linear") return LinearScaling{parameters.number("factor")};
  if (type == "dynamic") {
    constexpr std::string_view kWhy = "dynamic scaling counts from max_position_embeddings";
    parameters.expect(kOriginal, positions, kWhy);
    fields.expect(kOriginal, positions, kWhy);
    return DynamicNtkScaling{parameters.number("factor"), positions};
  }
  if (type == "yarn") return yarn_of(parameters, original_length(fields, parameters, positions));
  if (type == "longrope") {
    return long_rope_of(parameters, original_length(fields, parameters, positions), positions);
  }
  if (type == "llama3") {
    return Llama3Scaling{.factor = parameters.number("factor"),
                         .original_max_len = original_length(fields, parameters, positions),
                         .low_freq_factor = parameters.number("low_freq_factor"),
                         .high_freq_factor = parameters.number("high_freq_factor")};
  }
  parameters.json().fail(
      fmt::format(": rope_type is \"{}\", expected default, linear, dynamic, yarn, longrope or "
                  "llama3",
                  type));
}

// rope_scaling takes precedence over rope_parameters, unless it is empty.
std::optional<io::JsonPart> parameters_of(ConfigFields& fields) {
  auto found = fields.find("rope_parameters");
  auto earlier = fields.find("rope_scaling");
  if (!earlier) return found;
  return earlier->is(io::JsonKind::kObject) && earlier->value().items.empty() ? found : earlier;
}

constexpr std::string_view kWholeHeads = "the models of this family turn whole heads";

RotaryPositions rotary_with(double base, const ModelConfig& config) {
  return {.base = base, .rotary_dim = config.head_dim, .pairing = RotaryPairing::kHalves};
}

void read_parameters(ConfigFields& fields, const io::JsonPart& found, const ModelConfig& config,
                     RotaryPositions& rotary) {
  ConfigFields parameters(found);
  rotary.base = parameters.number_or("rope_theta", rotary.base);
  parameters.expect("partial_rotary_factor", std::int64_t{1}, kWholeHeads);
  rotary.scaling = scaling_of(fields, parameters, config.max_positions);
  parameters.check_all_known();
}

}  // namespace

RotaryPositions read_rotary(ConfigFields& fields, const ModelConfig& config, double base) {
  RotaryPositions rotary = rotary_with(fields.number_or("rope_theta", base), config);
  fields.expect("partial_rotary_factor", std::int64_t{1}, kWholeHeads);
  if (const auto found = parameters_of(fields)) read_parameters(fields, *found, config, rotary);
  // Other scalings ignore it.
  fields.find(kOriginal);
  return rotary;
}

RotaryPositions read_rotary_of(ConfigFields& fields, const ModelConfig& config,
                               const char* layer_type) {
  const bool is_full = std::string_view(layer_type) == "full_attention";
  RotaryPositions rotary = rotary_with(is_full ? fields.number_or("rope_theta", 1000000)
                                               : fields.number_or("rope_local_base_freq", 10000),
                                       config);
  fields.expect("partial_rotary_factor", std::int64_t{1}, kWholeHeads);
  fields.find(kOriginal);
  const auto earlier = fields.find("rope_scaling");
  const bool has_scaling =
      earlier && !(earlier->is(io::JsonKind::kObject) && earlier->value().items.empty());
  const auto found = fields.find("rope_parameters");
  if (found) {
    if (has_scaling) {
      earlier->fail(" is beside rope_parameters, expected one of them");
    }
    ConfigFields types(*found);
    const auto parameters = types.find(layer_type);
    types.find(is_full ? "sliding_attention" : "full_attention");
    types.check_all_known();
    if (parameters) read_parameters(fields, *parameters, config, rotary);
  } else if (has_scaling && is_full) {
    read_parameters(fields, *earlier, config, rotary);
  }
  return rotary;
}

}}}  // namespace heed::v0::models
