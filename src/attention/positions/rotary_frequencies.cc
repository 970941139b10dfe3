#include "heed/attention/rotary_frequencies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>

#include "core/float_environment.h"
#include "heed/core/elementary.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

using Length = std::optional<std::int64_t>;

void check_number(bool is_valid, std::string_view scaling, std::string_view name, double found,
                  std::string_view expected) {
  if (is_valid) return;
  throw InvalidArgument(
      fmt::format("rotary_frequencies: {}{} is {}, expected {}", scaling, name, found, expected));
}

bool is_positive(double x) { return x > 0 && std::isfinite(x); }

void check_factor(std::string_view scaling, double factor) {
  check_number(factor >= 1 && std::isfinite(factor), scaling, "factor", factor,
               "a number, at least 1");
}

void check_original(std::string_view scaling, std::int64_t length, std::int64_t least = 1) {
  check_number(length >= least, scaling, "original_max_len", static_cast<double>(length),
               least == 1 ? "a positive number" : "at least 2");
}

void check_attention_factor(std::string_view scaling, std::optional<double> factor) {
  check_number(!factor || is_positive(*factor), scaling, "attention_factor", factor.value_or(0),
               "a positive number");
}

double needed_length(std::string_view scaling, Length length) {
  if (!length) {
    throw InvalidArgument(fmt::format(
        "rotary_frequencies: length is not given, but {} depends on the sequence's", scaling));
  }
  check_number(*length >= 1, "", "length", static_cast<double>(*length), "a positive number");
  return static_cast<double>(*length);
}

// f_i for each pair.
RotaryFrequencies unscaled(std::int64_t rotary_dim, double base) {
  auto inv_freq = Tensor<double>::uninitialized({rotary_dim / 2});
  for (std::int64_t i = 0; i < rotary_dim / 2; ++i) {
    const double exponent = static_cast<double>(2 * i) / static_cast<double>(rotary_dim);
    inv_freq(i) = 1 / elementary::pow(base, exponent);
  }
  return {.inv_freq = std::move(inv_freq)};
}

// A mean of the frequency, with the weight `kept` clamped to 0 … 1, and of the divided frequency.
double mixed(double frequency, double factor, double kept) {
  const double part = std::clamp(kept, 0.0, 1.0);
  return part * frequency + (1 - part) * (frequency / factor);
}

// The frequencies of one call, with an overload for each scaling.
struct Scaled {
  std::int64_t rotary_dim;
  double base;
  Length length;

  RotaryFrequencies operator()(std::monostate) const { return unscaled(rotary_dim, base); }

  RotaryFrequencies operator()(const LinearScaling& scaling) const {
    check_factor("LinearScaling::", scaling.factor);
    RotaryFrequencies result = unscaled(rotary_dim, base);
    for (double& frequency : result.inv_freq.elements()) frequency /= scaling.factor;
    return result;
  }

  RotaryFrequencies operator()(const DynamicNtkScaling& scaling) const {
    check_factor("DynamicNtkScaling::", scaling.factor);
    check_original("DynamicNtkScaling::", scaling.original_max_len);
    const double ratio = std::max(1.0, needed_length("DynamicNtkScaling", length) /
                                           static_cast<double>(scaling.original_max_len));
    const auto dim = static_cast<double>(rotary_dim);
    // With two dimensions, the only frequency is 1 for every base.
    const double exponent = rotary_dim == 2 ? 0 : dim / (dim - 2);
    const double growth = scaling.factor * ratio - (scaling.factor - 1);
    return unscaled(rotary_dim, base * elementary::pow(growth, exponent));
  }

  RotaryFrequencies operator()(const YarnScaling& scaling) const;
  RotaryFrequencies operator()(const LongRopeScaling& scaling) const;

  RotaryFrequencies operator()(const Llama3Scaling& scaling) const {
    constexpr std::string_view kName = "Llama3Scaling::";
    check_factor(kName, scaling.factor);
    check_original(kName, scaling.original_max_len);
    const auto [factor, original, low, high] = scaling;
    check_number(is_positive(low), kName, "low_freq_factor", low, "a positive number");
    check_number(high > low && std::isfinite(high), kName, "high_freq_factor", high,
                 fmt::format("more than low_freq_factor, {}", low));
    RotaryFrequencies result = unscaled(rotary_dim, base);
    for (double& frequency : result.inv_freq.elements()) {
      const double turns = static_cast<double>(original) * frequency / (2 * std::numbers::pi);
      frequency = mixed(frequency, factor, (turns - low) / (high - low));
    }
    return result;
  }
};

void check_yarn(const YarnScaling& scaling, double base) {
  constexpr std::string_view kName = "YarnScaling::";
  check_factor(kName, scaling.factor);
  check_original(kName, scaling.original_max_len);
  check_number(base > 1, "", "base (rope_theta)", base, "more than 1 for YarnScaling");
  check_number(is_positive(scaling.beta_slow), kName, "beta_slow", scaling.beta_slow,
               "a positive number");
  check_number(scaling.beta_fast > scaling.beta_slow && std::isfinite(scaling.beta_fast), kName,
               "beta_fast", scaling.beta_fast,
               fmt::format("more than beta_slow, {}", scaling.beta_slow));
  check_attention_factor(kName, scaling.attention_factor);
  if (scaling.mscale.has_value() != scaling.mscale_all_dim.has_value()) {
    throw InvalidArgument(
        "rotary_frequencies: YarnScaling has one of mscale and mscale_all_dim, expected both or "
        "none");
  }
  check_number(is_positive(scaling.mscale.value_or(1)), kName, "mscale", scaling.mscale.value_or(1),
               "a positive number");
  check_number(is_positive(scaling.mscale_all_dim.value_or(1)), kName, "mscale_all_dim",
               scaling.mscale_all_dim.value_or(1), "a positive number");
}

double attention_factor_of(const YarnScaling& scaling) {
  if (scaling.attention_factor) return *scaling.attention_factor;
  const auto m = [&](double weight) { return 1 + 0.1 * weight * elementary::log(scaling.factor); };
  return scaling.mscale ? m(*scaling.mscale) / m(*scaling.mscale_all_dim) : m(1);
}

RotaryFrequencies Scaled::operator()(const YarnScaling& scaling) const {
  check_yarn(scaling, base);
  const auto dim = static_cast<double>(rotary_dim);
  const auto pair_that_turns = [&](double times) {
    const double longest = 2 * std::numbers::pi * times;
    return dim * elementary::log(static_cast<double>(scaling.original_max_len) / longest) /
           (2 * elementary::log(base));
  };
  double low = pair_that_turns(scaling.beta_fast);
  double high = pair_that_turns(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  RotaryFrequencies result = unscaled(rotary_dim, base);
  for (std::int64_t i = 0; i < rotary_dim / 2; ++i) {
    double& frequency = result.inv_freq(i);
    const double interpolated = (static_cast<double>(i) - low) / (high - low);
    frequency = mixed(frequency, scaling.factor, 1 - interpolated);
  }
  result.attention_factor = attention_factor_of(scaling);
  return result;
}

double attention_factor_of(const LongRopeScaling& scaling) {
  if (scaling.attention_factor) return *scaling.attention_factor;
  return std::sqrt(1 + elementary::log(scaling.factor) /
                           elementary::log(static_cast<double>(scaling.original_max_len)));
}

void check_divisors(std::string_view name, const std::vector<double>& divisors, std::int64_t half) {
  const auto size = static_cast<double>(divisors.size());
  check_number(std::cmp_equal(divisors.size(), half), "the size of LongRopeScaling::", name, size,
               fmt::format("rotary_dim / 2 = {}", half));
  for (const double divisor : divisors) {
    check_number(is_positive(divisor), "a number of LongRopeScaling::", name, divisor,
                 "a positive number");
  }
}

RotaryFrequencies Scaled::operator()(const LongRopeScaling& scaling) const {
  constexpr std::string_view kName = "LongRopeScaling::";
  check_original(kName, scaling.original_max_len, 2);
  check_attention_factor(kName, scaling.attention_factor);
  if (!scaling.attention_factor) check_factor(kName, scaling.factor);
  check_divisors("short_factor", scaling.short_factor, rotary_dim / 2);
  check_divisors("long_factor", scaling.long_factor, rotary_dim / 2);
  const bool is_long =
      needed_length("LongRopeScaling", length) > static_cast<double>(scaling.original_max_len);
  RotaryFrequencies result = unscaled(rotary_dim, base);
  auto divisor = (is_long ? scaling.long_factor : scaling.short_factor).begin();
  for (double& frequency : result.inv_freq.elements()) frequency /= *divisor++;
  result.attention_factor = attention_factor_of(scaling);
  return result;
}

}  // namespace

RotaryFrequencies rotary_frequencies(std::int64_t rotary_dim, double base,
                                     const RotaryScaling& scaling,
                                     std::optional<std::int64_t> length) {
  const FloatEnvironment environment;
  check_number(rotary_dim >= 0 && rotary_dim % 2 == 0, "", "rotary_dim",
               static_cast<double>(rotary_dim), "an even number, at least 0");
  check_number(is_positive(base), "", "base (rope_theta)", base, "a positive number");
  return std::visit(Scaled{rotary_dim, base, length}, scaling);
}

}}  // namespace heed::v0
