// Keys and values in tensors of any strides and any floating-point type.
#pragma once

#include <cstdint>

#include "attention/keys/key_source.h"
#include "attention/request/request.h"
#include "attention/request/tensor_rows.h"
#include "heed/attention/plan.h"

namespace heed { inline namespace v0 {

// The tensors whose tiles are copied: those of another type than Real, and those whose rows are so
// far apart that many queries read them faster from a copy.
struct StagedTensors {
  bool key = false;
  bool value = false;
};
template <class Real>
StagedTensors staged_tensors(const AttentionShapes& shapes);

// As staged_tensors(), for rows of bfloat16 that are read as pairs of neighbouring numbers: rows at
// which a pair would begin in the one row and end in the next are copied too.
StagedTensors staged_pairs(const AttentionShapes& shapes);

template <class Real>
class TensorKeys final : public KeySource<Real> {
 public:
  TensorKeys() = default;
  // The tensors must have been checked; there may be no values where only weights are wanted.
  TensorKeys(const kernels::BasicKernelTable<Real>& table, const AttentionShapes& shapes,
             const Rows& key, const Rows& value)
      : table_(&table),
        head_dim_(shapes.head_dim),
        value_dim_(shapes.value_dim),
        key_(key),
        value_(value) {}

  kernels::BasicTile<Real> tile(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                                const Staging<Real>& staging) const override;
  void describe(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                kernels::StoredTile& tile) const override;

 private:
  // The first row of numbers or of pairs; `stride` is in numbers or pairs.
  struct ReadRows {
    const Real* first;
    std::int64_t stride;
  };
  // The rows in place, or copied to `staged` unless that is null.
  ReadRows read(const Rows& rows, const std::byte* first, std::int64_t count, std::int64_t dim,
                Real* staged) const;
  static ReadRows copy_pairs(const Rows& rows, const std::byte* first, std::int64_t count,
                             std::int64_t dim, Real* staged);

  const kernels::BasicKernelTable<Real>* table_ = nullptr;
  std::int64_t head_dim_ = 0;
  std::int64_t value_dim_ = 0;
  Rows key_;
  Rows value_;
};

}}  // namespace heed::v0
