// Checked packed sequences, for the forward and the backward pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/plan/plan.h"
#include "attention/request/call.h"
#include "heed/attention/packed.h"

namespace heed { inline namespace v0 {

// One of the sequences, as entry `index` of a batch with an entry for each sequence.
template <class T>
struct PackedSequence {
  std::int64_t index;
  std::int64_t count;  // the number of sequences
  RowRange queries;
  RowRange keys;
  TensorView<const T> query;
  TensorView<const T> key;
  TensorView<const T> value;
  Request<float> request;

  RowRange batches() const { return {index, index + 1}; }

  // Some rows of a packed tensor as [batch, heads, length, dim]. All batch entries have the same
  // data, so the one that is computed finds its rows.
  template <class Element>
  static TensorView<Element> entries(const TensorView<Element>& packed, std::int64_t batch,
                                     RowRange rows) {
    return packed.slice(0, rows.begin, rows.end)
        .permute({1, 0, 2})
        .broadcast_to({batch, packed.extent(1), rows.end - rows.begin, packed.extent(2)});
  }

  template <class Element>
  TensorView<Element> of_queries(const TensorView<Element>& packed) const {
    return entries(packed, count, queries);
  }
  template <class Element>
  TensorView<Element> of_keys(const TensorView<Element>& packed) const {
    return entries(packed, count, keys);
  }
  // The sequence's part of an lse [num_heads, total_q_len], as [batch, num_heads, q_len].
  template <class Element>
  TensorView<Element> of_lse(const TensorView<Element>& lse) const {
    return lse.slice(1, queries.begin, queries.end)
        .broadcast_to({count, lse.extent(0), queries.end - queries.begin});
  }
};

// Both throw InvalidArgument, whose message begins with `function`, when an argument does not fit.

// Checks boundaries of sequences in the tensor `name`, which has `length` rows.
void check_boundaries(const char* function, const char* name,
                      std::span<const std::int64_t> boundaries, std::int64_t length);

template <class T>
std::vector<PackedSequence<T>> check_packed(const char* function, TensorView<const T> query,
                                            TensorView<const T> key, TensorView<const T> value,
                                            const PackedSequences& where,
                                            const AttentionOptions& options);

// Prepares sequences, of which there is at least one.
template <class T>
PreparedPass<float> prepare_packed(const std::vector<PackedSequence<T>>& sequences, Pass pass);

}}  // namespace heed::v0
