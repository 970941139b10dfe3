#include "models/finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "heed/core/error.h"
#include "models/parts.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

std::span<const float>::iterator first_that_is_no_number(std::span<const float> numbers) {
  return std::find_if_not(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
}

void refuse_weights(const Model::Parts& parts) {
  for (const std::string& name : parts.tensors) {
    const Tensor<float> weights = to_float(parts.checkpoint->tensor(name));
    const std::span<const float> elements = weights.elements();
    const auto found = first_that_is_no_number(elements);
    if (found == elements.end()) continue;
    throw FormatError(
        parts.checkpoint->name(), 0,
        fmt::format("tensor {} of shape {} holds {} as element {}, expected finite "
                    "numbers; the file is damaged, or training went wrong",
                    name, to_string(weights.shape()), *found, found - elements.begin()));
  }
}

}  // namespace

void check_finite(const char* function, const Model::Parts& parts, FloatView result) {
  const std::span<const float> numbers(result.data(),
                                       static_cast<std::size_t>(result.num_elements()));
  if (first_that_is_no_number(numbers) == numbers.end()) return;
  refuse_weights(parts);
  throw InvalidArgument(
      fmt::format("{}: the result holds infinite numbers or NaN though all weights are finite: of "
                  "these ids the "
                  "model computes numbers beyond float32",
                  function));
}

}}}  // namespace heed::v0::models
