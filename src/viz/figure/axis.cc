#include "viz/figure/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace heed { inline namespace v0 { namespace figure {
namespace {

constexpr std::int64_t kFewCells = 20;  // up to this many cells all have a label
constexpr int kIndexTicks = 8;

std::string superscript(int exponent) {
  constexpr std::array<const char*, 10> kDigits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "⁻" : "";
  for (const char digit : fmt::format("{}", std::abs(exponent))) {
    text += kDigits[static_cast<std::size_t>(digit - '0')];
  }
  return text;
}

// Returns the smallest of 1, 2, 5, 10, … that is not below `step`.
double round_step(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<Tick> linear_ticks(double low, double high, int count) {
  const double step = round_step((high - low) / count);
  const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 12);
  const bool is_plain = std::max(std::abs(low), std::abs(high)) < 1e6 && decimals <= 5;
  std::vector<Tick> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
    const double at = i == 0 ? 0 : i * step;
    ticks.push_back(
        {at, is_plain ? fmt::format("{:.{}f}", at, decimals) : fmt::format("{:g}", at)});
  }
  return ticks;
}

std::vector<Tick> log_ticks(double low, double high, int count) {
  const double decades = std::log10(high / low);
  const int step = std::max(1, static_cast<int>(std::ceil(decades / count)));
  std::vector<Tick> ticks;
  const auto add = [&](double at) {
    if (at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9)) ticks.push_back({at, number(at)});
  };
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  for (int exponent = first; exponent <= std::log10(high) + 1e-9; ++exponent) {
    if ((exponent - first) % step == 0) add(std::pow(10.0, exponent));
    if (decades > 2.5) continue;
    add(2 * std::pow(10.0, exponent));
    add(5 * std::pow(10.0, exponent));
  }
  return ticks;
}

}  // namespace

std::string number(double value) {
  const double exponent = value > 0 ? std::log10(value) : 0;
  const bool is_power = std::abs(exponent - std::round(exponent)) < 1e-9;
  if (std::abs(exponent) < 4 - 1e-9) return fmt::format("{:.6g}", value);
  const int whole = static_cast<int>(std::floor(exponent + 1e-9));
  const std::string power = "10" + superscript(whole);
  return is_power ? power : fmt::format("{:.3g}·{}", value / std::pow(10.0, whole), power);
}

Axis number_axis(std::string label, double low, double high, bool is_log, int count) {
  Axis axis{.label = std::move(label), .low = low, .high = high, .is_log = is_log};
  axis.ticks = is_log ? log_ticks(low, high, count) : linear_ticks(low, high, count);
  return axis;
}

namespace {

// Ticks at round numbers, each at the centre of the cell that contains it.
std::vector<Tick> index_ticks(const Categories& categories) {
  const auto first = static_cast<double>(categories.first);
  const auto end = static_cast<double>(categories.first + categories.extent * categories.block);
  std::vector<Tick> ticks;
  for (const Tick& tick : linear_ticks(first, end, kIndexTicks)) {
    if (tick.at >= end || tick.at != std::round(tick.at)) continue;
    const auto cell = (static_cast<std::int64_t>(tick.at) - categories.first) / categories.block;
    ticks.push_back({static_cast<double>(cell) + 0.5, fmt::format("{:.0f}", tick.at)});
  }
  return ticks;
}

}  // namespace

Axis category_axis(std::string label, const Categories& categories, bool is_flipped) {
  Axis axis{.label = std::move(label), .skips_labels = categories.labels.empty()};
  (is_flipped ? axis.low : axis.high) = static_cast<double>(categories.extent);
  if (is_flipped) axis.high = 0;
  if (categories.labels.empty() && categories.extent > kFewCells) {
    axis.ticks = index_ticks(categories);
    return axis;
  }
  for (std::int64_t i = 0; i < categories.extent; ++i) {
    const std::int64_t index = i * categories.block;
    axis.ticks.push_back(
        {static_cast<double>(i) + 0.5, categories.labels.empty()
                                           ? fmt::format("{}", categories.first + index)
                                           : categories.labels[static_cast<std::size_t>(index)]});
  }
  return axis;
}

double place(const Axis& axis, double value) {
  if (axis.is_log) return std::log(value / axis.low) / std::log(axis.high / axis.low);
  return (value - axis.low) / (axis.high - axis.low);
}

}}}  // namespace heed::v0::figure
