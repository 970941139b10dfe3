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
constexpr std::string_view kTurned = "rope.dimension_count";
constexpr std::string_view kOriginalLength = "rope.scaling.original_context_length";
constexpr std::string_view kDivisors = "rope_freqs.weight";
constexpr std::string_view kLongFactors = "rope_factors_long.weight";
constexpr std::string_view kShortFactors = "rope_factors_short.weight";

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
  scaling.original_max_len = keys.has(kOriginalLength) ? keys.size(kOriginalLength) : positions;
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
  keys.ignore(kOriginalLength);
  keys.ignore(kYarnFast);
  keys.ignore(kYarnSlow);
  if (type == "none" || factor == 1) return {};
  return LinearScaling{factor};
}

std::int64_t turned_dims(io::GgufKeys& keys, const ModelConfig& config, bool is_partial) {
  if (!is_partial) {
    keys.expect_number(kTurned, static_cast<double>(config.head_dim),
                       "the architecture turns whole heads");
    return config.head_dim;
  }
  const std::int64_t dim = keys.has(kTurned) ? keys.size(kTurned) : config.head_dim;
  if (dim > config.head_dim || dim % 2 != 0) {
    keys.fail(kTurned,
              fmt::format("an even number, at most {}, the size of heads", config.head_dim));
  }
  return dim;
}

// A tensor [size] of positive numbers.
std::vector<double> factors_in(const GgufFile& file, std::string_view name, std::int64_t size) {
  const StoredTensor stored = Checkpoint::of(file).tensor(std::string(name));
  const Shape expected{size};
  if (stored.shape != expected) {
    throw FormatError(file.name(), 0,
                      fmt::format("tensor {} has shape {}, expected {}", name,
                                  to_string(stored.shape), to_string(expected)));
  }
  std::vector<double> factors;
  const Tensor<float> numbers = to_float(stored);
  for (const float number : numbers.elements()) {
    if (!(number > 0) || !std::isfinite(number)) {
      throw FormatError(file.name(), 0,
                        fmt::format("tensor {} holds {}, expected positive numbers", name, number));
    }
    factors.push_back(number);
  }
  return factors;
}

// Phi-3's, whose files have no type of scaling.
RotaryScaling gguf_long_rope(io::GgufKeys& keys, const ModelConfig& config, std::int64_t dim) {
  LongRopeScaling scaling{.short_factor = factors_in(keys.file(), kShortFactors, dim / 2),
                          .long_factor = factors_in(keys.file(), kLongFactors, dim / 2),
                          .original_max_len = config.max_positions};
  if (keys.has(kOriginalLength)) scaling.original_max_len = keys.size(kOriginalLength);
  const double attention = keys.number(kRopeAttention, 1);
  if (!(attention > 0 && std::isfinite(attention))) keys.fail(kRopeAttention, "a positive number");
  scaling.attention_factor = attention;
  constexpr const char* kWhy = "the frequencies have LongRoPE's factors alone";
  if (keys.string(kRopeScaling, "longrope") != "longrope") keys.fail(kRopeScaling, "longrope");
  keys.expect_number(kRopeFactor, 1, kWhy);
  keys.expect_number(kOldRopeFactor, 1, kWhy);
  for (const std::string_view key : {kYarnMixture, kYarnFast, kYarnSlow}) {
    keys.expect_number(key, 0, kWhy);
  }
  check_no_corrections(keys);
  return scaling;
}

}  // namespace

RotaryPositions read_gguf_rotary(io::GgufKeys& keys, const ModelConfig& config, bool is_partial) {
  RotaryPositions rotary{.base = base_of(keys, kRopeBase, 10000),
                         .rotary_dim = turned_dims(keys, config, is_partial)};
  const auto& tensors = keys.file().tensors();
  const bool has_factors =
      tensors.contains(std::string(kLongFactors)) || tensors.contains(std::string(kShortFactors));
  if (config.family == Family::kPhi3 && has_factors) {
    rotary.scaling = gguf_long_rope(keys, config, rotary.rotary_dim);
    return rotary;
  }
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
  if (config.rotaries.empty() || config.architecture != "llama") {
    throw FormatError(
        file.name(), 0,
        fmt::format("tensor {} scales rotary frequencies, which the architecture {} lacks",
                    kDivisors, config.architecture));
  }
  RotaryPositions& rotary = config.rotaries.front();
  rotary.divisors = factors_in(file, kDivisors, rotary.rotary_dim / 2);
}

}}}  // namespace heed::v0::models
