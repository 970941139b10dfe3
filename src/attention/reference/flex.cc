// Attention with user's functions of whole matrices of scores and weights.
#include "attention/reference/row.h"
#include "attention/request/request.h"
#include "core/float_environment.h"
#include "heed/attention/reference.h"
#include "heed/core/cancellation.h"

namespace heed { inline namespace v0 { namespace reference {

namespace {

template <class Visit>
void for_each_row(const ScoreShape& shape, const Visit& visit) {
  for (std::int64_t batch = 0; batch < shape.batch; ++batch)
    for (std::int64_t head = 0; head < shape.num_heads; ++head)
      for (std::int64_t q = 0; q < shape.q_len; ++q) {
        check_cancelled();
        visit(batch, head, q);
      }
}

template <class Real>
Tensor<Real> attend(TensorView<const Real> query, TensorView<const Real> key,
                    TensorView<const Real> value, const FlexOptions<Real>& options) {
  const FloatEnvironment environment;
  BasicAttentionOptions<Real> plain;
  plain.scale = options.scale;
  const auto problem = check_attention("flex_attention", query, key, value, plain);
  const ScoreShape& shape = problem.scores();
  Tensor<Real> matrix({shape.batch, shape.num_heads, shape.q_len, shape.kv_len});
  const auto row_of = [&](std::int64_t batch, std::int64_t head, std::int64_t q) {
    const std::int64_t index = (batch * shape.num_heads + head) * shape.q_len + q;
    return std::span<Real>(matrix.data() + index * shape.kv_len,
                           static_cast<std::size_t>(shape.kv_len));
  };
  for_each_row(shape, [&](std::int64_t batch, std::int64_t head, std::int64_t q) {
    const auto scores = row_of(batch, head, q);
    for (std::int64_t k = 0; k < shape.kv_len; ++k) {
      const Real* row = row_pointer(key, batch, problem.kv_head(head), k);
      scores[static_cast<std::size_t>(k)] =
          problem.scale * dot(row_pointer(query, batch, head, q), row, problem.head_dim());
    }
  });
  if (options.score_mod) options.score_mod(matrix);
  for_each_row(shape, [&](std::int64_t batch, std::int64_t head, std::int64_t q) {
    const auto row = row_of(batch, head, q);
    softmax_row<Real>(row, std::nullopt, row);
  });
  if (options.prob_mod) options.prob_mod(matrix);
  Tensor<Real> out({shape.batch, shape.num_heads, shape.q_len, problem.value_dim()});
  for_each_row(shape, [&](std::int64_t batch, std::int64_t head, std::int64_t q) {
    const auto weights = row_of(batch, head, q);
    for (std::int64_t k = 0; k < shape.kv_len; ++k) {
      const Real weight = weights[static_cast<std::size_t>(k)];
      if (weight == 0) continue;
      const Real* row = row_pointer(value, batch, problem.kv_head(head), k);
      for (std::int64_t d = 0; d < problem.value_dim(); ++d) {
        out(batch, head, q, d) += weight * row[d];
      }
    }
  });
  return out;
}

}  // namespace

Tensor<float> flex_attention(FloatView query, FloatView key, FloatView value,
                             const FlexOptions<float>& options) {
  return attend(query, key, value, options);
}

Tensor<double> flex_attention(DoubleView query, DoubleView key, DoubleView value,
                              const FlexOptions<double>& options) {
  return attend(query, key, value, options);
}

}}}  // namespace heed::v0::reference
