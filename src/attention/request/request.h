// The checked arguments of attention, in the form that every implementation takes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include "attention/masks/bound_mask.h"
#include "attention/masks/dropout_mask.h"
#include "attention/terms/terms.h"
#include "core/check_tensor.h"
#include "heed/attention.h"
#include "heed/attention/kv_storage.h"
#include "heed/attention/mask.h"
#include "heed/attention/plan.h"
#include "heed/attention/statistics.h"

namespace heed { inline namespace v0 {

// Some of the queries, heads and keys of a problem. Masks, terms, sinks and dropout use their
// places in the whole problem. The tensors have the heads of the part alone, and those of queries
// only its queries, in order.
struct ScorePart {
  std::int64_t num_queries = 0;
  // Queries come in ranges of `stretch` queries each, except that the last may be shorter. Range i
  // begins at query i · step + first, or for odd i at i · step + odd_first.
  std::int64_t stretch = 1;
  std::int64_t step = 1;
  std::int64_t first = 0;
  std::int64_t odd_first = 0;
  // Consecutive heads, with all heads that share their key heads.
  std::int64_t first_head = 0;
  std::int64_t num_heads = 0;
  // The keys of the part. They begin at a multiple of kernels::kChunkKeys, or, if there are none,
  // at the end of all keys.
  RowRange keys;

  // The place of query i of the part in the whole problem.
  std::int64_t query(std::int64_t i) const {
    const std::int64_t number = i / stretch;
    return number * step + (number % 2 == 0 ? first : odd_first) + i % stretch;
  }
};

// The checked arguments of a call of attention, without its tensors.
template <class Real>
struct Request {
  AttentionShapes shape;
  std::int64_t heads_per_kv_head;
  Real scale;
  Terms<Real> terms;                            // what is done to scores
  std::optional<TensorView<const Real>> sinks;  // [num_heads]
  BoundMask mask;
  DropoutMask dropout;
  Precision precision = Precision::kFast;
  // True if keys and values come from a KeySource, which copies the tiles that it gives.
  bool has_key_source = false;
  // How the KeySource stores them. Quantised keys and values are multiplied as the integers stored.
  KvStorage key_storage = KvStorage::kFloat32;
  KvStorage value_storage = KvStorage::kFloat32;
  // The part of the scores to compute; all of them if empty.
  std::optional<ScorePart> part = std::nullopt;

  std::int64_t kv_head(std::int64_t head) const { return head / heads_per_kv_head; }
  // The shape of the scores, with the positions of the queries.
  const ScoreShape& scores() const { return mask.shape(); }
  std::int64_t head_dim() const { return shape.head_dim; }
  std::int64_t value_dim() const { return shape.value_dim; }
  // The queries, heads and keys to compute: their number, and the place of each among all.
  std::int64_t num_queries() const { return part ? part->num_queries : shape.q_len; }
  std::int64_t query(std::int64_t i) const { return part ? part->query(i) : i; }
  std::int64_t num_heads() const { return part ? part->num_heads : shape.num_heads; }
  std::int64_t num_kv_heads() const { return num_heads() / heads_per_kv_head; }
  std::int64_t head(std::int64_t i) const { return part ? part->first_head + i : i; }
  RowRange keys() const { return part ? part->keys : RowRange{0, shape.kv_len}; }
  std::int64_t num_keys() const { return keys().end - keys().begin; }
  // The number of rows of one key head of a batch entry.
  std::int64_t rows_per_kv_head() const { return num_queries() * heads_per_kv_head; }
  // The step between queries that see similar keys, as the mask says: 1 where neighbours do.
  std::int64_t query_step() const {
    return std::clamp<std::int64_t>(num_queries(), 1, mask.query_step());
  }
  // The number of rows whose queries are first, first + step, first + 2 · step, …
  std::int64_t rows_in_steps(std::int64_t step, std::int64_t first = 0) const {
    return (num_queries() - first + step - 1) / step * heads_per_kv_head;
  }
};

// True if something is done to scores that the plain kernels do not have.
template <class Real>
bool changes_scores(const Request<Real>& request) {
  return !request.terms.empty() || !request.mask.is_structural();
}

// A request with its tensors, in the form that the reference reads.
template <class Real>
struct Problem : Request<Real> {
  using View = TensorView<const Real>;

  View query;  // [batch, num_heads, q_len, head_dim]
  View key;    // [batch, num_kv_heads, kv_len, head_dim]
  View value;  // [batch, num_kv_heads, kv_len, value_dim]
  // True if weights and gradients of scores are rounded to bfloat16 before they are multiplied.
  bool rounds_factors = false;
};

// All of these throw InvalidArgument, whose message begins with `function`, when an argument does
// not fit.

// Checks that num_heads is a multiple of num_kv_heads, and 0 if that is 0.
void check_heads(const char* function, const AttentionShapes& shapes);

// Returns the shapes of three tensors, of any floating-point types, that fit each other.
template <class Q, class K, class V>
AttentionShapes check_shapes(const char* function, TensorView<const Q> query,
                             TensorView<const K> key, TensorView<const V> value);

// As above, without values: value_dim is 0.
template <class T>
AttentionShapes check_shapes(const char* function, TensorView<const T> query,
                             TensorView<const T> key);

// The default scale, 1 / √head_dim.
template <class Real>
Real default_scale(std::int64_t head_dim) {
  return head_dim == 0 ? Real{1} : 1 / std::sqrt(static_cast<Real>(head_dim));
}

template <class Real>
Request<Real> check_request(const char* function, const AttentionShapes& shapes,
                            const BasicAttentionOptions<Real>& options);

// Checks a request for weights before dropout. It may have no table that is added to values, as
// there are none.
template <class Real>
Request<Real> check_weight_request(const char* function, const AttentionShapes& shapes,
                                   BasicAttentionOptions<Real> options) {
  if (options.relative_vectors) options.relative_vectors->value.reset();
  Request<Real> request = check_request(function, shapes, options);
  request.dropout = DropoutMask(Dropout{});
  return request;
}

template <class Real>
Problem<Real> check_attention(const char* function, TensorView<const Real> query,
                              TensorView<const Real> key, TensorView<const Real> value,
                              const BasicAttentionOptions<Real>& options) {
  const AttentionShapes shapes = check_shapes(function, query, key, value);
  return {{check_request(function, shapes, options)}, query, key, value};
}

// Checks a problem of weights before dropout, which has no values.
template <class Real>
Problem<Real> check_weights(const char* function, TensorView<const Real> query,
                            TensorView<const Real> key,
                            const BasicAttentionOptions<Real>& options) {
  const AttentionShapes shapes = check_shapes(function, query, key);
  return {{check_weight_request(function, shapes, options)}, query, key, {}};
}

// Checks that every row exists.
void check_rows(const char* function, std::span<const AttentionRow> rows, const ScoreShape& shape);

void check_statistics(const char* function, const StatisticsOptions& statistics);

// Tensors of the right shapes, not initialised except for the key mass, which is 0.
template <class Real>
BasicAttentionStatistics<Real> make_statistics(const ScoreShape& shape, std::int64_t top_k) {
  const Shape rows{shape.batch, shape.num_heads, shape.q_len};
  const Shape top{shape.batch, shape.num_heads, shape.q_len, top_k};
  return {.lse = Tensor<Real>::uninitialized(rows),
          .entropy = Tensor<Real>::uninitialized(rows),
          .max_weight = Tensor<Real>::uninitialized(rows),
          .max_key = Tensor<std::int64_t>::uninitialized(rows),
          .top_weights = Tensor<Real>::uninitialized(top),
          .top_keys = Tensor<std::int64_t>::uninitialized(top),
          .key_mass = Tensor<Real>({shape.batch, shape.num_heads, shape.kv_len})};
}

}}  // namespace heed::v0
