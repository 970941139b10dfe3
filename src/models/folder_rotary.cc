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

// Phi-3's: LongRoPE also by its names in early files, "su" and "yarn".
RotaryScaling only_long_rope(ConfigFields& fields, ConfigFields& parameters,
                             const std::string& type, std::int64_t positions,
                             std::int64_t otherwise) {
  if (type != "longrope" && type != "su" && type != "yarn") {
    parameters.json().fail(
        fmt::format(": rope_type is \"{}\", expected default, longrope, su or yarn", type));
  }
  parameters.find(kOriginal);  // not read: the configuration's own counts
  return long_rope_of(parameters, fields.integer_or(kOriginal, otherwise), positions);
}

RotaryScaling scaling_of(ConfigFields& fields, ConfigFields& parameters, std::int64_t positions,
                         const RotaryRules& rules) {
  const std::string earlier = parameters.string_or("type", "default");
  const std::string type = parameters.string_or("rope_type", earlier);
  if (type == "default") return {};
  if (rules.long_rope_from) {
    return only_long_rope(fields, parameters, type, positions, *rules.long_rope_from);
  }
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

// The number of dimensions that are turned, or `otherwise` if the member is missing.
std::int64_t turned_dims(ConfigFields& fields, const char* key, const ModelConfig& config,
                         const RotaryRules& rules, std::int64_t otherwise) {
  if (!rules.fraction) {
    fields.expect(key, std::int64_t{1}, "the models of this family turn whole heads");
    return otherwise;
  }
  const auto found = fields.find(key);
  if (!found) return otherwise;
  const double fraction = found->number();
  if (!(fraction >= 0 && fraction <= 1)) {
    found->fail(fmt::format(" is {}, expected 0 to 1", fraction));
  }
  return static_cast<std::int64_t>(static_cast<double>(config.head_dim) * fraction);
}

// The settings beside rope_parameters.
RotaryPositions rotary_with(ConfigFields& fields, const ModelConfig& config,
                            const RotaryRules& rules) {
  const auto otherwise =
      static_cast<std::int64_t>(static_cast<double>(config.head_dim) * rules.fraction.value_or(1));
  return {.base = fields.number_or(rules.base_key, rules.base),
          .rotary_dim = turned_dims(fields, rules.fraction_key, config, rules, otherwise),
          .pairing = rules.pairing};
}

void read_parameters(ConfigFields& fields, const io::JsonPart& found, const ModelConfig& config,
                     const RotaryRules& rules, RotaryPositions& rotary) {
  ConfigFields parameters(found);
  rotary.base = parameters.number_or("rope_theta", rotary.base);
  rotary.rotary_dim =
      turned_dims(parameters, "partial_rotary_factor", config, rules, rotary.rotary_dim);
  rotary.scaling = scaling_of(fields, parameters, config.max_positions, rules);
  parameters.check_all_known();
}

}  // namespace

RotaryPositions read_rotary(ConfigFields& fields, const ModelConfig& config,
                            const RotaryRules& rules) {
  RotaryPositions rotary = rotary_with(fields, config, rules);
  if (const auto found = parameters_of(fields)) {
    read_parameters(fields, *found, config, rules, rotary);
  }
  // Other scalings ignore it.
  fields.find(kOriginal);
  return rotary;
}

RotaryPositions read_rotary_of(ConfigFields& fields, const ModelConfig& config,
                               const char* layer_type, const RotaryRules& rules) {
  const bool is_full = std::string_view(layer_type) == "full_attention";
  RotaryPositions rotary = rotary_with(fields, config, rules);
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
    if (parameters) read_parameters(fields, *parameters, config, rules, rotary);
  } else if (has_scaling && is_full) {
    read_parameters(fields, *earlier, config, rules, rotary);
  }
  return rotary;
}

}}}  // namespace heed::v0::models
