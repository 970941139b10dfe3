// The rotation that distributes large numbers in a few dimensions over many, before quantisation.
#pragma once

#include <cstdint>

#include "attention/cache/page_layout.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace detail {

// row = H row, where H is the orthonormal Walsh–Hadamard matrix, applied in blocks of the largest
// power of two that divides `dim`. H is its own inverse.
void rotate(float* row, std::int64_t dim);

// The queries and results of one sequence, as floats of the stored dimensions.
class RotatedQueries {
 public:
  // query [1, num_heads, n, head_dim]
  template <class T>
  RotatedQueries(const PageLayout& layout, TensorView<const T> query)
      : layout_(&layout),
        query_({1, query.extent(1), query.extent(2), layout.key.stored_dim}),
        out_(Tensor<float>::uninitialized(
            {1, query.extent(1), query.extent(2), layout.value.stored_dim})) {
    for (std::int64_t h = 0; h < query.extent(1); ++h) {
      for (std::int64_t i = 0; i < query.extent(2); ++i) {
        float* const row = &query_(0, h, i, 0);
        for (std::int64_t d = 0; d < layout.key.dim; ++d) row[d] = query(0, h, i, d);
        if (layout.key.is_rotated()) rotate(row, layout.key.stored_dim);
      }
    }
  }

  FloatView query() const { return query_.view(); }
  // The tensor for the results, [1, num_heads, n, stored_dim].
  TensorView<float> out() { return out_.view(); }

  // Writes the results, rotated back, to [1, num_heads, n, value_dim].
  template <class T>
  void finish(const TensorView<T>& out) {
    const SideLayout& side = layout_->value;
    for (std::int64_t h = 0; h < out.extent(1); ++h) {
      for (std::int64_t i = 0; i < out.extent(2); ++i) {
        float* const row = &out_(0, h, i, 0);
        if (side.is_rotated()) rotate(row, side.stored_dim);
        for (std::int64_t d = 0; d < side.dim; ++d) out(0, h, i, d) = static_cast<T>(row[d]);
      }
    }
  }

 private:
  const PageLayout* layout_;
  Tensor<float> query_;
  Tensor<float> out_;
};

}}}  // namespace heed::v0::detail
