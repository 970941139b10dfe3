#include "heed/attention/relative_position.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/float_environment.h"
#include "heed/core/elementary.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

constexpr std::int64_t kMostDistance = std::int64_t{1} << 20;

void check_distance(const char* function, std::int64_t distance, std::int64_t least) {
  if (distance >= least && distance <= kMostDistance) return;
  throw InvalidArgument(fmt::format("{}: max_distance is {}, expected {} to {}", function, distance,
                                    least, kMostDistance));
}

// The entry of `distance` ≥ 0 among `count`; the first half is exact. Computed in float and in the
// order of transformers' T5, as entries come from rounded logarithms.
std::int64_t logarithmic_bucket(std::int64_t distance, std::int64_t count,
                                std::int64_t max_distance) {
  const std::int64_t exact = count / 2;
  if (distance < exact) return distance;
  const float steps = elementary::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                      static_cast<float>(elementary::log(static_cast<double>(max_distance) /
                                                         static_cast<double>(exact))) *
                      static_cast<float>(count - exact);
  return std::min(exact + static_cast<std::int64_t>(steps), count - 1);
}

}  // namespace

RelativeBuckets RelativeBuckets::clip(std::int64_t max_distance) {
  check_distance("RelativeBuckets::clip", max_distance, 0);
  return {Rule::kClip, 2 * max_distance + 1, max_distance};
}

RelativeBuckets RelativeBuckets::t5(std::int64_t num_buckets, std::int64_t max_distance,
                                    bool bidirectional) {
  constexpr const char* kFunction = "RelativeBuckets::t5";
  if (num_buckets < (bidirectional ? 4 : 2) || num_buckets > kMostDistance ||
      (bidirectional && num_buckets % 2 != 0)) {
    throw InvalidArgument(fmt::format("{}: num_buckets is {}, expected {} to {}{}", kFunction,
                                      num_buckets, bidirectional ? 4 : 2, kMostDistance,
                                      bidirectional ? " and even" : ""));
  }
  check_distance(kFunction, max_distance, num_buckets / (bidirectional ? 4 : 2) + 1);
  return {bidirectional ? Rule::kT5 : Rule::kCausalT5, num_buckets, max_distance};
}

std::int64_t RelativeBuckets::operator()(std::int64_t distance) const noexcept {
  const FloatEnvironment environment;
  const std::int64_t near = std::clamp(distance, -max_distance_, max_distance_);
  switch (rule_) {
    case Rule::kClip:
      return near + max_distance_;
    case Rule::kT5:
      return (near > 0 ? count_ / 2 : 0) +
             logarithmic_bucket(std::abs(near), count_ / 2, max_distance_);
    case Rule::kCausalT5:
      return logarithmic_bucket(std::max<std::int64_t>(-near, 0), count_, max_distance_);
  }
  return 0;
}

std::string RelativeBuckets::description() const {
  if (rule_ == Rule::kClip) return fmt::format("clip({})", max_distance_);
  return fmt::format("{}t5({}, {})", rule_ == Rule::kCausalT5 ? "causal " : "", count_,
                     max_distance_);
}

}}  // namespace heed::v0
