// Packed sequences: one job for each, on the schedule of the largest.
#include "heed/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "attention/call.h"
#include "attention/fused/forward.h"
#include "heed/error.h"
#include "heed/parallel.h"

namespace heed::inline v0 {

namespace {

constexpr const char* kFunction = "attention_packed";

template <class T>
void check_rank(const char* name, TensorView<const T> view) {
  if (view.rank() == 3) return;
  throw InvalidArgument(
      fmt::format("{}: {} has shape {}, expected 3 dimensions [total length, heads, dim]",
                  kFunction, name, to_string(view.shape())));
}

void check_boundaries(const char* name, std::span<const std::int64_t> boundaries,
                      std::int64_t length) {
  if (boundaries.empty() || boundaries.front() != 0) {
    throw InvalidArgument(
        fmt::format("{}: the boundaries of {} must start with 0", kFunction, name));
  }
  const auto fall = std::is_sorted_until(boundaries.begin(), boundaries.end());
  if (fall != boundaries.end()) {
    throw InvalidArgument(fmt::format("{}: the boundaries of {} fall from {} to {}", kFunction,
                                      name, *(fall - 1), *fall));
  }
  if (boundaries.back() != length) {
    throw InvalidArgument(fmt::format("{}: the boundaries of {} end at {}, but it has {} rows",
                                      kFunction, name, boundaries.back(), length));
  }
}

// Some rows of a packed tensor as [batch, heads, length, dim], every batch entry the same: the one
// that is computed finds its rows there.
template <class T>
TensorView<T> sequence(const TensorView<T>& packed, std::int64_t batch, RowRange rows) {
  return packed.slice(0, rows.begin, rows.end)
      .permute({1, 0, 2})
      .broadcast_to({batch, packed.extent(1), rows.end - rows.begin, packed.extent(2)});
}

// The tensors of one sequence, as entry `index` of a batch.
template <class T>
struct Sequence {
  TensorView<const T> query;
  TensorView<const T> key;
  TensorView<const T> value;
  AttentionBuffers<T> buffers;
  Call call;
  std::int64_t index;

  RowRange batches() const { return {index, index + 1}; }
  fused::Job job() const {
    return {&call.terms,          rows_of(query), rows_of(key), rows_of(value),
            rows_of(buffers.out), buffers.lse,    batches()};
  }
};

template <class T>
class Packed {
 public:
  using View = TensorView<const T>;

  Packed(View query, View key, View value, const PackedSequences& where,
         const AttentionOptions& options) {
    check(query, key, value, where);
    const auto count = static_cast<std::int64_t>(where.query.size()) - 1;
    out = Tensor<T>::uninitialized({query.extent(0), query.extent(1), value.extent(2)});
    lse = Tensor<float>::uninitialized({query.extent(1), query.extent(0)});
    sequences_.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const RowRange q{where.query[at], where.query[at + 1]};
      const RowRange k{where.key[at], where.key[at + 1]};
      const View query_i = sequence(query, count, q);
      const View key_i = sequence(key, count, k);
      const View value_i = sequence(value, count, k);
      const AttentionShapes shapes = check_shapes(kFunction, query_i, key_i, value_i);
      const auto lse_i = lse.view()
                             .slice(1, q.begin, q.end)
                             .broadcast_to({count, query.extent(1), q.end - q.begin});
      sequences_.push_back({query_i,
                            key_i,
                            value_i,
                            {sequence(out.view(), count, q), lse_i},
                            decide(kFunction, shapes, options),
                            i});
    }
  }

  void compute() const {
    if (sequences_.empty()) return;
    if (!sequences_.front().call.is_fused()) {
      for (const Sequence<T>& one : sequences_) compute_by_reference(one);
      return;
    }
    std::vector<fused::Job> jobs;
    jobs.reserve(sequences_.size());
    for (const Sequence<T>& one : sequences_) jobs.push_back(one.job());
    fused::forward(jobs, schedule());
  }

  Tensor<T> out;      // [total_q_len, num_heads, value_dim]
  Tensor<float> lse;  // [num_heads, total_q_len]

 private:
  static void check(View query, View key, View value, const PackedSequences& where) {
    check_rank("query", query);
    check_rank("key", key);
    check_rank("value", value);
    check_boundaries("query", where.query, query.extent(0));
    check_boundaries("key", where.key, key.extent(0));
    if (where.query.size() != where.key.size()) {
      throw InvalidArgument(fmt::format("{}: query has {} sequences but key has {}", kFunction,
                                        where.query.size() - 1, where.key.size() - 1));
    }
    if (value.extent(0) != key.extent(0)) {
      throw InvalidArgument(fmt::format("{}: value has {} rows but key has {}", kFunction,
                                        value.extent(0), key.extent(0)));
    }
  }

  // That of the most queries and the most keys there are.
  fused::Schedule schedule() const {
    const auto longer = [](auto length) {
      return [length](const Sequence<T>& a, const Sequence<T>& b) {
        return a.call.shapes.*length < b.call.shapes.*length;
      };
    };
    const auto most_keys =
        std::max_element(sequences_.begin(), sequences_.end(), longer(&AttentionShapes::kv_len));
    const auto most_queries =
        std::max_element(sequences_.begin(), sequences_.end(), longer(&AttentionShapes::q_len));
    Terms<float> terms = most_keys->call.terms;
    terms.shape.q_len = most_queries->call.shapes.q_len;
    AttentionShapes shapes = most_keys->call.shapes;
    shapes.q_len = terms.shape.q_len;
    return fused::make_schedule(*most_keys->call.schedule.table, terms, shapes, num_threads());
  }

  static void compute_by_reference(const Sequence<T>& one) {
    const auto entry = [](auto view) { return view.slice(0, 0, 1); };
    execute_by_reference<T>(one.call.terms, one.batches(), one.query, one.key, one.value,
                            {entry(one.buffers.out), entry(one.buffers.lse)});
  }

  std::vector<Sequence<T>> sequences_;
};

template <class T>
AttentionOutput<T, float> compute(TensorView<const T> query, TensorView<const T> key,
                                  TensorView<const T> value, const PackedSequences& sequences,
                                  const AttentionOptions& options) {
  Packed<T> packed(query, key, value, sequences, options);
  packed.compute();
  return {std::move(packed.out), std::move(packed.lse)};
}

}  // namespace

Tensor<float> attention_packed(FloatView query, FloatView key, FloatView value,
                               const PackedSequences& sequences, const AttentionOptions& options) {
  return compute(query, key, value, sequences, options).out;
}

Tensor<Float16> attention_packed(Float16View query, Float16View key, Float16View value,
                                 const PackedSequences& sequences,
                                 const AttentionOptions& options) {
  return compute(query, key, value, sequences, options).out;
}

Tensor<BFloat16> attention_packed(BFloat16View query, BFloat16View key, BFloat16View value,
                                  const PackedSequences& sequences,
                                  const AttentionOptions& options) {
  return compute(query, key, value, sequences, options).out;
}

AttentionOutput<float> attention_packed_with_lse(FloatView query, FloatView key, FloatView value,
                                                 const PackedSequences& sequences,
                                                 const AttentionOptions& options) {
  return compute(query, key, value, sequences, options);
}

}  // namespace heed::inline v0
