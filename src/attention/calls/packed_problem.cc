#include "attention/calls/packed_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "attention/masks/query_offsets.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

template <class T>
void check_rank(const char* function, const char* name, TensorView<const T> view) {
  if (view.rank() == 3) return;
  throw InvalidArgument(
      fmt::format("{}: {} has shape {}, expected 3 dimensions [total length, heads, dim]", function,
                  name, to_string(view.shape())));
}

template <class T>
void check_tensors(const char* function, TensorView<const T> query, TensorView<const T> key,
                   TensorView<const T> value, const PackedSequences& where) {
  check_rank(function, "query", query);
  check_rank(function, "key", key);
  check_rank(function, "value", value);
  check_boundaries(function, "query", where.query, query.extent(0));
  check_boundaries(function, "key", where.key, key.extent(0));
  if (where.query.size() != where.key.size()) {
    throw InvalidArgument(fmt::format("{}: query has {} sequences but key has {}", function,
                                      where.query.size() - 1, where.key.size() - 1));
  }
  if (value.extent(0) != key.extent(0)) {
    throw InvalidArgument(fmt::format("{}: value has {} rows but key has {}", function,
                                      value.extent(0), key.extent(0)));
  }
}

}  // namespace

void check_boundaries(const char* function, const char* name,
                      std::span<const std::int64_t> boundaries, std::int64_t length) {
  if (boundaries.empty() || boundaries.front() != 0) {
    throw InvalidArgument(
        fmt::format("{}: the boundaries of {} must start with 0", function, name));
  }
  const auto fall = std::is_sorted_until(boundaries.begin(), boundaries.end());
  if (fall != boundaries.end()) {
    throw InvalidArgument(fmt::format("{}: the boundaries of {} fall from {} to {}", function, name,
                                      *(fall - 1), *fall));
  }
  if (boundaries.back() != length) {
    throw InvalidArgument(fmt::format("{}: the boundaries of {} end at {}, but it has {} rows",
                                      function, name, boundaries.back(), length));
  }
}

template <class T>
std::vector<PackedSequence<T>> check_packed(const char* function, TensorView<const T> query,
                                            TensorView<const T> key, TensorView<const T> value,
                                            const PackedSequences& where,
                                            const AttentionOptions& options) {
  check_tensors(function, query, key, value, where);
  AttentionOptions own = options;
  const auto entries = [](const auto&... of) { return PackedSequence<T>::entries(of...); };
  const auto count = static_cast<std::int64_t>(where.query.size()) - 1;
  check_count(function, {.batch = count, .query_offset = options.query_offset});
  std::vector<PackedSequence<T>> sequences;
  sequences.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const RowRange queries{where.query[at], where.query[at + 1]};
    const RowRange keys{where.key[at], where.key[at + 1]};
    const TensorView<const T> query_i = entries(query, count, queries);
    const TensorView<const T> key_i = entries(key, count, keys);
    const TensorView<const T> value_i = entries(value, count, keys);
    const AttentionShapes shapes = check_shapes(function, query_i, key_i, value_i);
    own.query_offset = options.query_offset[i];
    sequences.push_back(
        {i, count, queries, keys, query_i, key_i, value_i, check_request(function, shapes, own)});
  }
  return sequences;
}

template <class T>
PreparedPass<float> prepare_packed(const std::vector<PackedSequence<T>>& sequences, Pass pass) {
  std::vector<const Request<float>*> requests;
  requests.reserve(sequences.size());
  for (const PackedSequence<T>& one : sequences) requests.push_back(&one.request);
  return prepare_together<float>(requests, pass);
}

template std::vector<PackedSequence<float>> check_packed(const char*, FloatView, FloatView,
                                                         FloatView, const PackedSequences&,
                                                         const AttentionOptions&);
template std::vector<PackedSequence<Float16>> check_packed(const char*, Float16View, Float16View,
                                                           Float16View, const PackedSequences&,
                                                           const AttentionOptions&);
template std::vector<PackedSequence<BFloat16>> check_packed(const char*, BFloat16View, BFloat16View,
                                                            BFloat16View, const PackedSequences&,
                                                            const AttentionOptions&);
template PreparedPass<float> prepare_packed(const std::vector<PackedSequence<float>>&, Pass);
template PreparedPass<float> prepare_packed(const std::vector<PackedSequence<Float16>>&, Pass);
template PreparedPass<float> prepare_packed(const std::vector<PackedSequence<BFloat16>>&, Pass);

}}  // namespace heed::v0
