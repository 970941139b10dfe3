/// A weight matrix in its storage type, and its product with rows of activations.
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
  /// The matrix of a checkpoint's tensor [rows, columns], whose bytes are read from the mapped
  /// file. Q4_0 and Q4_1 are copied into groups of rows, which products read faster.
  /// @param checkpoint keeps the bytes mapped
  /// @throws InvalidArgument when the tensor is not of rank 2, or its shape does not fit its bytes.
  WeightMatrix(const Checkpoint& checkpoint, const StoredTensor& tensor);
  /// A matrix that owns its elements. @throws InvalidArgument when the tensor is not of rank 2.
  explicit WeightMatrix(Tensor<float> elements);
  /// A matrix of which only the sizes are known, for checks of files: its elements must not be
  /// read.
  static WeightMatrix without_elements(std::int64_t rows, std::int64_t columns);

  std::int64_t rows() const noexcept;
  std::int64_t columns() const noexcept;
  WeightType type() const noexcept;
  /// The size of its elements as stored, in bytes.
  std::int64_t num_bytes() const noexcept;
  /// The rows begin ≤ i < end, which share the elements. @throws InvalidArgument when there are
  /// fewer.
  WeightMatrix slice_rows(std::int64_t begin, std::int64_t end) const;
  /// A matrix of copies of the rows begin + i · step + j, in the order of i < count and j < size.
  /// @throws InvalidArgument when there are fewer.
  WeightMatrix copy_rows(std::int64_t begin, std::int64_t step, std::int64_t count,
                         std::int64_t size) const;

  /// out[i] = W[index][i] as floats. @param out [columns]
  /// @throws InvalidArgument when the row does not exist, or `out` is of another size.
  void row(std::int64_t index, std::span<float> out) const;
  /// All elements as floats, [rows, columns].
  Tensor<float> to_float() const;

  /// out = x · Wᵀ (+ bias), with W's elements converted to float and sums in float32. Up to 12 rows
  /// of x read W in its storage type, four of them in one pass; for more rows, and for types after
  /// Q4_1, a few rows of W at a time are converted to float. In either case a row of out does not
  /// depend on the others. The bits do not depend on the number of threads; for types after Q4_1
  /// they are those of the product with the matrix of floats.
  ///
  /// For quantised W in its storage type, Σ q x of a block is multiplied by its scale, and with
  /// Q4_1 Σ x by its minimum: the error is within twice that of float sums over converted weights.
  ///
  /// @param x    [n, columns], rows contiguous, with any stride between rows
  /// @param bias [rows], or empty
  /// @param out  [n, rows], strides as for x; must not overlap x
  /// @throws InvalidArgument when shapes do not fit.
  void multiply(FloatView x, std::span<const float> bias, TensorView<float> out) const;

 private:
  struct Elements;
  std::shared_ptr<const Elements> elements_;
  std::int64_t first_row_ = 0;
  std::int64_t num_rows_ = 0;
};

}}}  // namespace heed::v0::models
