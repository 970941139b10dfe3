#include "train/settings.h"

#include <fmt/format.h>

#include "heed/core/error.h"

namespace heed::cli {

namespace {

template <class Check>
void refuse_usage(const Check& check) {
  try {
    check();
  } catch (const InvalidArgument& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

void check_range(std::string_view name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return;
  throw UsageError(fmt::format("{} is {}, expected {} to {}", name, value, low, high));
}

void check_given(const train::TrainingSettings& settings) {
  refuse_usage([&] { train::check_settings(settings, kOptionNames); });
}

void check_given(const train::TranslationSettings& settings) {
  refuse_usage([&] { train::check_settings(settings, kOptionNames); });
}

void check_given(const models::CausalConfig& config) {
  refuse_usage([&] { models::check_config(config, kOptionNames); });
}

}  // namespace heed::cli
