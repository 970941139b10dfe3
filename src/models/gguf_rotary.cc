#include "models/gguf_rotary.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <variant>

#include "heed/core/elementary.h"
#include "heed/core/error.h"
#include "heed/models/checkpoint.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::string_view kRopeBase = "rope.freq_base";
constexpr std::string_view kWindowRopeBase = "rope.freq_base_swa";
constexpr std::string_view kRopeScaling = "rope.scaling.type";
constexpr std::string_view kRopeFactor = "rope.scaling.factor";
constexpr std::string_view kOldRopeFactor = "rope.scale_linear";
constexpr std::string_view kRopeAttention = "rope.scaling.attn_factor";
constexpr std::string_view kYarnMixture = "rope.scaling.yarn_ext_factor";
constexpr std::string_view kYarnFast = "rope.scaling.yarn_beta_fast";
constexpr std::string_view kYarnSlow = "rope.scaling.yarn_beta_slow";
constexpr std::string_view kDivisors = "rope_freqs.weight";

double base_of(io::GgufKeys& keys, std::string_view key, double otherwise) {
  const double base = keys.number(key, otherwise);
  // With a smaller base, frequencies would grow from pair to pair.
  if (!(base >= 1 && std::isfinite(base))) keys.fail(key, "a number, at least 1");
  return base;
}

// The divisor of frequencies. 0 in the file stands for 1.
double gguf_factor(io::GgufKeys& keys) {
  const std::string_view key = keys.has(kRopeFactor) ? kRopeFactor : kOldRopeFactor;
  const double factor = keys.number(key, 0);
  if (factor == 0) return 1;
  if (!(factor >= 1 && std::isfinite(factor))) keys.fail(key, "a number, at least 1, or 0: none");
  return factor;
}

// Refuses corrections of cosines and sines other than YaRN's own; files may state the neutral
// values.
void check_no_corrections(io::GgufKeys& keys) {
  constexpr std::string_view kReason = "cosines and sines have YaRN's own factor";
  keys.expect_number("rope.scaling.yarn_attn_factor", 1, kReason);
  keys.expect_number("rope.scaling.yarn_log_multiplier", 0, kReason);
  keys.expect_number("rope.scaling.alpha", 0, "heed has no such scaling");
}

RotaryScaling gguf_yarn(io::GgufKeys& keys, double factor, std::int64_t positions) {
  YarnScaling scaling{.factor = factor};
  scaling.original_max_len = keys.has("rope.scaling.original_context_length")
                                 ? keys.size("rope.scaling.original_context_length")
                                 : positions;
  scaling.beta_fast = keys.number(kYarnFast, scaling.beta_fast);
  scaling.beta_slow = keys.number(kYarnSlow, scaling.beta_slow);
  if (!(scaling.beta_slow > 0 && std::isfinite(scaling.beta_slow))) {
    keys.fail(kYarnSlow, "a positive number");
  }
  if (!(scaling.beta_fast > scaling.beta_slow && std::isfinite(scaling.beta_fast))) {
    keys.fail(kYarnFast, fmt::format("more than yarn_beta_slow, {}", scaling.beta_slow));
  }
  const double attention = keys.number(kRopeAttention, 1);
  if (!(attention > 0 && std::isfinite(attention))) keys.fail(kRopeAttention, "a positive number");
  scaling.attention_factor = attention * (1 + 0.1 * elementary::log(factor));
  return scaling;
}

RotaryScaling gguf_scaling(io::GgufKeys& keys, std::int64_t positions) {
  const std::string type = keys.string(kRopeScaling, "linear");
  const double factor = gguf_factor(keys);
  const bool is_yarn = type == "yarn";
  if (!is_yarn && type != "linear" && type != "none")
    keys.fail(kRopeScaling, "none, linear or yarn");
  check_no_corrections(keys);
  // A negative number selects the default of the scaling type.
  if (keys.number(kYarnMixture, -1) >= 0) {
    keys.expect_number(kYarnMixture, is_yarn ? 1 : 0, "scalings are not mixed otherwise");
  }
  if (is_yarn) return gguf_yarn(keys, factor, positions);
  keys.expect_number(kRopeAttention, 1, "cosines and sines have a factor with YaRN only");
  // Other scalings ignore these.
  keys.ignore("rope.scaling.original_context_length");
  keys.ignore(kYarnFast);
  keys.ignore(kYarnSlow);
  if (type == "none" || factor == 1) return {};
  return LinearScaling{factor};
}

}  // namespace

RotaryPositions read_gguf_rotary(io::GgufKeys& keys, const ModelConfig& config) {
  RotaryPositions rotary{.base = base_of(keys, kRopeBase, 10000), .rotary_dim = config.head_dim};
  keys.expect_number("rope.dimension_count", static_cast<double>(config.head_dim),
                     "the architecture turns whole heads");
  rotary.scaling = gguf_scaling(keys, config.max_positions);
  if (std::holds_alternative<YarnScaling>(rotary.scaling) && rotary.base == 1) {
    keys.fail(kRopeBase, "more than 1 with YaRN");
  }
  return rotary;
}

RotaryPositions read_gguf_window_rotary(io::GgufKeys& keys, const ModelConfig& config) {
  return {.base = base_of(keys, kWindowRopeBase, 10000), .rotary_dim = config.head_dim};
}

void read_gguf_divisors(const GgufFile& file, ModelConfig& config) {
  if (!file.tensors().contains(kDivisors)) return;
  const auto fail = [&](const std::string& problem) {
    throw FormatError(file.name(), 0, fmt::format("tensor {} {}", kDivisors, problem));
  };
  if (config.rotaries.empty() || config.architecture != "llama") {
    fail(fmt::format("scales rotary frequencies, which the architecture {} lacks",
                     config.architecture));
  }
  const StoredTensor stored = Checkpoint::of(file).tensor(kDivisors);
  RotaryPositions& rotary = config.rotaries.front();
  const Shape expected{rotary.rotary_dim / 2};
  if (stored.shape != expected) {
    fail(fmt::format("has shape {}, expected {}", to_string(stored.shape), to_string(expected)));
  }
  const Tensor<float> divisors = to_float(stored);
  for (const float divisor : divisors.elements()) {
    if (!(divisor > 0) || !std::isfinite(divisor)) {
      fail(fmt::format("holds {}, expected positive numbers", divisor));
    }
    rotary.divisors.push_back(divisor);
  }
}

}}}  // namespace heed::v0::models
