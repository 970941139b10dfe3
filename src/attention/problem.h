// Attention's arguments after they were checked: the one gate every implementation goes through.
#pragma once

#include <cstdint>
#include <optional>

#include "attention/bound_mask.h"
#include "attention/philox.h"
#include "heed/attention.h"

namespace heed::inline v0 {

template <class Real>
struct Problem {
  using View = TensorView<const Real>;

  View query;  // [batch, num_heads, q_len, head_dim]
  View key;    // [batch, num_kv_heads, kv_len, head_dim]
  View value;  // [batch, num_kv_heads, kv_len, value_dim]
  ScoreShape shape;
  std::int64_t head_dim;
  std::int64_t value_dim;
  std::int64_t heads_per_kv_head;
  Real scale;
  Real softcap;
  ScoreMod score_mod;
  std::optional<View> bias;   // broadcast to the scores
  std::optional<View> sinks;  // [num_heads]
  BoundMask mask;
  DropoutMask dropout;

  std::int64_t kv_head(std::int64_t head) const { return head / heads_per_kv_head; }
};

// Throws InvalidArgument, with `function` in front, when anything does not fit.
template <class Real>
Problem<Real> check_attention(const char* function, TensorView<const Real> query,
                              TensorView<const Real> key, TensorView<const Real> value,
                              const BasicAttentionOptions<Real>& options);

extern template Problem<float> check_attention(const char*, FloatView, FloatView, FloatView,
                                               const AttentionOptions&);
extern template Problem<double> check_attention(const char*, DoubleView, DoubleView, DoubleView,
                                                const AttentionOptions64&);

// Throws InvalidArgument unless `view`, called `name`, has the given shape and a contiguous
// innermost dimension.
template <class Real>
void check_tensor(const char* function, const char* name, TensorView<const Real> view,
                  const Shape& expected);

extern template void check_tensor(const char*, const char*, FloatView, const Shape&);
extern template void check_tensor(const char*, const char*, DoubleView, const Shape&);

}  // namespace heed::inline v0
