// A tensor of a mask that broadcasts to the scores.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <utility>

#include "attention/masks/mask_part.h"
#include "heed/core/error.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace detail {

// A tensor in memory of its own, or a view of the caller's.
template <class T>
class BroadcastTensor {
 public:
  explicit BroadcastTensor(TensorView<const T> view) : view_(view) {}
  explicit BroadcastTensor(Tensor<T>&& owned) : owned_(std::move(owned)), view_(owned_.view()) {}

  // The view may refer to the owned memory: it remains valid in a move, but would not in a copy.
  BroadcastTensor(BroadcastTensor&&) noexcept = default;
  BroadcastTensor(const BroadcastTensor&) = delete;
  BroadcastTensor& operator=(const BroadcastTensor&) = delete;
  BroadcastTensor& operator=(BroadcastTensor&&) = delete;
  ~BroadcastTensor() = default;

  const Shape& shape() const { return view_.shape(); }

  void check(const char* name, const ScoreShape& scores) const {
    const Shape full{scores.batch, scores.num_heads, scores.q_len, scores.kv_len};
    try {
      view_.broadcast_to(full);
    } catch (const InvalidArgument&) {
      throw InvalidArgument(
          fmt::format("{}: shape {} does not broadcast to [batch, num_heads, q_len, kv_len] = {}",
                      name, to_string(view_.shape()), to_string(full)));
    }
  }

  const T& operator[](const ScoreIndex& at) const {
    const std::int64_t indices[] = {at.k, at.q, at.head, at.batch};
    std::int64_t offset = 0;
    for (int dim = 1; dim <= view_.rank(); ++dim) offset += indices[dim - 1] * step(dim);
    return view_.data()[offset];
  }

  // Calls use(rows) with the elements for a tile of scores.
  template <class Real, class Use>
  void with_rows(const ScoreShape& shape, const BasicScoreTile<Real>& tile, Use use) const {
    std::array<const T*, kernels::kMaxPanelWidth> rows;
    const std::int64_t offset = shape.query_offset[tile.batch];
    for (std::int32_t r = 0; r < tile.width; ++r) {
      rows[static_cast<std::size_t>(r)] =
          &(*this)[{tile.batch, tile.heads[r], tile.q_idx[r] - offset, tile.first_key}];
    }
    use(kernels::ScoreRows<T>{rows.data(), key_stride()});
  }

  // The distance between the elements of neighbouring keys; 0 if all keys share one element.
  std::int64_t key_stride() const { return view_.rank() > 0 ? step(1) : 0; }

  // Calls use(pointer to the element of the first key) for each row of a group, once for
  // consecutive rows that share their elements. Stops if `use` returns false, and then returns
  // false.
  template <class Use>
  bool each_row(const ScoreShape& shape, const RowGroup& rows, std::int64_t first_key,
                Use use) const {
    const T* last = nullptr;
    const std::int64_t offset = shape.query_offset[rows.batch];
    for (std::int32_t r = 0; r < rows.num_rows; ++r) {
      const T* row = &(*this)[{rows.batch, rows.heads[r], rows.q_idx[r] - offset, first_key}];
      if (row != last && !use(row)) return false;
      last = row;
    }
    return true;
  }

 private:
  // The stride of dimension −dim; 0 where the tensor is broadcast.
  std::int64_t step(int dim) const { return view_.extent(-dim) == 1 ? 0 : view_.stride(-dim); }

  Tensor<T> owned_;
  TensorView<const T> view_;
};

}}}  // namespace heed::v0::detail
