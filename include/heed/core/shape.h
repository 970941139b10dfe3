/// Shapes of tensors, and the checked multiplication of sizes.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "heed/core/config.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

/// The largest number of dimensions a tensor may have.
inline constexpr int kMaxRank = 6;

/// a · b for sizes.
/// @throws InvalidArgument when a factor is negative or the product does not fit in 63 bits.
HEED_API std::int64_t checked_multiply(std::int64_t a, std::int64_t b);

/// The extents of a tensor, outermost first: at most kMaxRank of them, each at least 0. A
/// default-constructed shape has rank 0, the shape of a scalar, which has one element.
class HEED_API Shape {
 public:
  constexpr Shape() = default;

  /// @throws InvalidArgument when there are more than kMaxRank extents, one is negative, or their
  /// product overflows.
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const noexcept { return rank_; }

  /// The extent of dimension `dim`, which counts from the end when it is negative: shape[-1] is the
  /// innermost.
  std::int64_t operator[](int dim) const noexcept {
    assert(dim >= -rank_ && dim < rank_);
    return extents_[static_cast<std::size_t>(dim < 0 ? dim + rank_ : dim)];
  }

  /// The number of elements: the product of the extents.
  std::int64_t num_elements() const noexcept { return num_elements_; }

  const std::int64_t* begin() const noexcept { return extents_.data(); }
  const std::int64_t* end() const noexcept { return extents_.data() + rank_; }

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  std::int64_t num_elements_ = 1;
  int rank_ = 0;
};

/// The shape as text, e.g. "[2, 8, 128, 64]".
HEED_API std::string to_string(const Shape& shape);

/// Distances between neighbours along each dimension, in elements. Only the first rank() entries
/// are used.
using Strides = std::array<std::int64_t, kMaxRank>;

/// The strides of a contiguous row-major tensor.
HEED_API Strides contiguous_strides(const Shape& shape) noexcept;

}}  // namespace heed::v0
