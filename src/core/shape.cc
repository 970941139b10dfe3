#include "heed/core/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace heed { inline namespace v0 {

std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) {
    throw InvalidArgument(
        fmt::format("size: {} times {} is not a size that fits in 63 bits", a, b));
  }
  return product;
}

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) {
  if (extents.size() > kMaxRank) {
    throw InvalidArgument(
        fmt::format("shape: {} dimensions, at most {} are supported", extents.size(), kMaxRank));
  }
  // A zero makes the product zero; overflow is therefore checked for the other extents, as strides
  // multiply them.
  std::int64_t product_without_zeros = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 0) {
      throw InvalidArgument(
          fmt::format("shape: extent {} in [{}] is negative", extent, fmt::join(extents, ", ")));
    }
    if (extent != 0) product_without_zeros = checked_multiply(product_without_zeros, extent);
    extents_[static_cast<std::size_t>(rank_++)] = extent;
  }
  const bool is_empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
  num_elements_ = is_empty ? 0 : product_without_zeros;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Strides contiguous_strides(const Shape& shape) noexcept {
  Strides strides{};
  std::int64_t step = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    strides[static_cast<std::size_t>(dim)] = step;
    step *= std::max<std::int64_t>(shape[dim], 1);
  }
  return strides;
}

}}  // namespace heed::v0
