/// A matrix of weights that stays as small as it is stored, and its product with rows of
/// activations.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/models/checkpoint.h"

namespace heed { inline namespace v0 { namespace models {

/// W [rows, columns], as float32, Float16, BFloat16 or quantised blocks. A handle: copies share the
/// elements. Immutable; any number of threads may use one.
class HEED_API WeightMatrix {
 public:
  WeightMatrix() = default;  ///< [0, 0]
  /// Of a tensor [rows, columns] of a checkpoint, whose bytes are read where they are mapped;
  /// weights of four bits are copied, into groups of rows that products read faster.
  /// @param checkpoint keeps the bytes mapped
  /// @throws InvalidArgument when the tensor is not of rank 2, or its shape does not fit its bytes.
  WeightMatrix(const Checkpoint& checkpoint, const StoredTensor& tensor);
  /// Of numbers that it takes over. @throws InvalidArgument when the tensor is not of rank 2.
  explicit WeightMatrix(Tensor<float> elements);

  std::int64_t rows() const noexcept;
  std::int64_t columns() const noexcept;
  WeightType type() const noexcept;
  /// Bytes that its elements take as they are stored.
  std::int64_t num_bytes() const noexcept;
  /// Rows begin ≤ i < end, sharing the elements. @throws InvalidArgument when there are fewer.
  WeightMatrix slice_rows(std::int64_t begin, std::int64_t end) const;

  /// out[i] = W[index][i] as floats. @param out [columns]
  /// @throws InvalidArgument when there is no such row, or `out` is of another size.
  void row(std::int64_t index, std::span<float> out) const;
  /// All of it. [rows, columns]
  Tensor<float> to_float() const;

  /// out = x · Wᵀ (+ bias): a row of x for each row of out, W's elements taken as the floats that
  /// they stand for, sums in float32. Up to 12 rows of x read W as it is stored, four of them in
  /// one pass; for more of them a few rows of W at a time become floats. In either case a row of
  /// out does not depend on the others. The same bits for any number of threads.
  ///
  /// Where W is read as it is stored and quantised, Σ q x of a block is multiplied by its scale,
  /// and with Q4_1 Σ x by its minimum: the error stays within twice that of plain float sums over
  /// decoded weights.
  ///
  /// @param x    [n, columns], rows contiguous, at any distance from each other
  /// @param bias [rows], or empty
  /// @param out  [n, rows], as x; must not overlap x
  /// @throws InvalidArgument when shapes do not fit.
  void multiply(FloatView x, std::span<const float> bias, TensorView<float> out) const;

 private:
  struct Elements;
  std::shared_ptr<const Elements> elements_;
  std::int64_t first_row_ = 0;
  std::int64_t num_rows_ = 0;
};

}}}  // namespace heed::v0::models
