#include "attention/keys/tensor_keys.h"

#include <cstdlib>
#include <cstring>

namespace heed { inline namespace v0 {

namespace {

// Rows at least this many bytes apart are copied: they use few cache sets, and a page each.
// Measured.
constexpr std::int64_t kFarApart = 2048;

// The number of queries of one key head from which on a copy of its keys saves more than it costs.
constexpr std::int64_t kQueriesThatPay = 64;

KvStorage storage_of(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return KvStorage::kFloat16;
    case DataType::kBFloat16:
      return KvStorage::kBFloat16;
    default:
      return KvStorage::kFloat32;  // also for doubles
  }
}

// Describes `count` rows, the first of which is at `first`.
void describe_rows(const Rows& rows, const std::byte* first, std::int64_t count,
                   kernels::StoredNumbers& numbers) {
  numbers.storage = storage_of(rows.type);
  numbers.is_columns = false;
  numbers.row_stride = rows.row_stride;
  for (std::int64_t key = 0; key < count; key += kernels::kGroupKeys) {
    numbers.groups[static_cast<std::size_t>(key / kernels::kGroupKeys)] =
        first + key * rows.row_stride;
  }
}

}  // namespace

template <class Real>
StagedTensors staged_tensors(const AttentionShapes& shapes) {
  const bool is_reused = shapes.q_len * shapes.num_heads >= kQueriesThatPay * shapes.num_kv_heads;
  const auto is_staged = [&](DataType type, std::int64_t stride) {
    if (type != data_type_of<Real>()) return true;
    return is_reused && std::abs(stride) * std::int64_t{sizeof(Real)} >= kFarApart;
  };
  return {is_staged(shapes.type_of_keys(), shapes.key_stride),
          is_staged(shapes.type_of_values(), shapes.value_stride)};
}

StagedTensors staged_pairs(const AttentionShapes& shapes) {
  const StagedTensors far = staged_tensors<float>([&] {
    AttentionShapes pairs = shapes;
    pairs.dtype = DataType::kFloat32;
    pairs.key_dtype = pairs.value_dtype = std::nullopt;
    pairs.key_stride /= 2;
    pairs.value_stride /= 2;
    return pairs;
  }());
  return {far.key || shapes.head_dim % 2 != 0 || shapes.key_stride % 2 != 0,
          far.value || shapes.value_dim % 2 != 0 || shapes.value_stride % 2 != 0};
}

template <class Real>
kernels::BasicTile<Real> TensorKeys<Real>::tile(std::int64_t batch, std::int64_t kv_head,
                                                RowRange keys, const Staging<Real>& staging) const {
  const std::int64_t count = keys.end - keys.begin;
  const auto rows = [&](const Rows& side, std::int64_t dim, Real* staged) {
    const std::byte* const first = side.row(batch, kv_head, keys.begin);
    const bool copies_pairs = staging.has_pairs && staged != nullptr;
    return copies_pairs ? copy_pairs(side, first, count, dim, staged)
                        : read(side, first, count, dim, staged);
  };
  const ReadRows key = rows(key_, head_dim_, staging.key);
  const ReadRows value = rows(value_, value_dim_, staging.value);
  return {.key = key.first,
          .key_stride = key.stride,
          .value = value.first,
          .value_stride = value.stride,
          .first_key = static_cast<std::int32_t>(keys.begin),
          .num_keys = static_cast<std::int32_t>(count)};
}

template <class Real>
void TensorKeys<Real>::describe(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                                kernels::StoredTile& tile) const {
  const std::int64_t count = keys.end - keys.begin;
  tile.first_key = static_cast<std::int32_t>(keys.begin);
  tile.num_keys = static_cast<std::int32_t>(count);
  describe_rows(key_, key_.row(batch, kv_head, keys.begin), count, tile.key);
  describe_rows(value_, value_.row(batch, kv_head, keys.begin), count, tile.value);
}

template <class Real>
typename TensorKeys<Real>::ReadRows TensorKeys<Real>::read(const Rows& rows, const std::byte* first,
                                                           std::int64_t count, std::int64_t dim,
                                                           Real* staged) const {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(Real));
  if (staged == nullptr) return {reinterpret_cast<const Real*>(first), rows.row_stride / kSize};
  for (std::int64_t k = 0; k < count; ++k) {
    table_->widen(rows.type, first + k * rows.row_stride, dim, staged + k * dim);
  }
  return {staged, dim};
}

template <class Real>
typename TensorKeys<Real>::ReadRows TensorKeys<Real>::copy_pairs(const Rows& rows,
                                                                 const std::byte* first,
                                                                 std::int64_t count,
                                                                 std::int64_t dim, Real* staged) {
  const std::int64_t stride = (dim + 1) / 2;
  for (std::int64_t k = 0; k < count; ++k) {
    if (dim % 2 != 0) staged[k * stride + stride - 1] = 0;
    std::memcpy(staged + k * stride, first + k * rows.row_stride,
                static_cast<std::size_t>(dim) * sizeof(BFloat16));
  }
  return {staged, stride};
}

template StagedTensors staged_tensors<float>(const AttentionShapes&);
template StagedTensors staged_tensors<double>(const AttentionShapes&);
template class TensorKeys<float>;
template class TensorKeys<double>;

}}  // namespace heed::v0
