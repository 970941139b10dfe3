// The checked arguments of linear attention.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "heed/attention/linear_attention.h"
#include "heed/attention/plan.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 { namespace recurrent {

struct Sizes {
  std::int64_t batch;
  // Of the output: those of the query, or those of the value if there are more.
  std::int64_t num_heads;
  std::int64_t num_kv_heads;  // of the value; each of them has a state
  std::int64_t length;
  std::int64_t head_dim;
  std::int64_t value_dim;
  std::int64_t heads_per_kv_head;
  // The number of states that a key, or a query, belongs to.
  std::int64_t states_per_key = 1;
  std::int64_t states_per_query = 1;

  std::int64_t key_head(std::int64_t kv_head) const { return kv_head / states_per_key; }
  std::int64_t query_head(std::int64_t head) const { return head / states_per_query; }

  Shape out() const { return {batch, num_heads, length, value_dim}; }
  Shape state() const { return {batch, num_kv_heads, head_dim, value_dim}; }
};

template <class Real>
struct Terms {
  Real scale;
  // Broadcast to [batch, num_kv_heads, length, head_dim].
  std::optional<TensorView<const Real>> decay;
  std::optional<TensorView<const Real>> beta;  // broadcast to [batch, num_kv_heads, length]
  std::optional<TensorView<const Real>>
      initial_state;  // [batch, num_kv_heads, head_dim, value_dim]
};

template <class Real>
struct Problem : Sizes, Terms<Real> {
  TensorView<const Real> query;  // [batch, num_heads / states_per_query, length, head_dim]
  TensorView<const Real> key;    // [batch, num_kv_heads / states_per_key, length, head_dim]
  TensorView<const Real> value;  // [batch, num_kv_heads, length, value_dim]
};

// All of these throw InvalidArgument, whose message begins with `function`, when an argument does
// not fit. T is float, double, Float16 or BFloat16.
template <class T>
Sizes check_sizes(const char* function, TensorView<const T> query, TensorView<const T> key,
                  TensorView<const T> value);

template <class Real>
Terms<Real> check_terms(const char* function, const Sizes& sizes,
                        const BasicLinearAttentionOptions<Real>& options);

// The shapes of the arguments of feature_map_attention.
template <class Real>
AttentionShapes check_feature_map(const char* function, TensorView<const Real> query,
                                  TensorView<const Real> key, TensorView<const Real> value,
                                  const FeatureMapOptions& options);

// φ(x)
template <class Real>
Real feature(FeatureMap map, Real x) {
  if (map == FeatureMap::kRelu) return x > 0 ? x : (x == x ? Real{0} : x);
  return x > 0 ? x + 1 : elementary::exp(x);
}

// φ′(x); that of ReLU is 0 at 0.
template <class Real>
Real feature_derivative(FeatureMap map, Real x) {
  if (x > 0) return 1;
  return map == FeatureMap::kRelu ? Real{0} : elementary::exp(x);
}

// The reference, in plain loops.
template <class Real>
LinearAttentionOutput<Real> attend_by_reference(const Problem<Real>& problem);

}}}  // namespace heed::v0::recurrent
