#include <cstddef>
#include <utility>
#include <vector>

#include "attention/masks/dropout_mask.h"
#include "nn/divided_tokens.h"
#include "nn/weights_of_heads.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

std::vector<AttentionRow> all_rows(const Shape& heads) {
  std::vector<AttentionRow> rows;
  rows.reserve(static_cast<std::size_t>(heads[0] * heads[1] * heads[2]));
  for (std::int64_t batch = 0; batch < heads[0]; ++batch) {
    for (std::int64_t head = 0; head < heads[1]; ++head) {
      for (std::int64_t query = 0; query < heads[2]; ++query) rows.push_back({batch, head, query});
    }
  }
  return rows;
}

// Applies the operator's dropout to weights [rows, kv_len].
template <class T>
void drop(Tensor<T>& weights, const std::vector<AttentionRow>& rows, const heed::Dropout& dropout) {
  const DropoutMask mask(dropout);
  if (mask.keeps_everything()) return;
  T* weight = weights.data();
  for (const AttentionRow& row : rows) {
    ScorePosition at{static_cast<std::int32_t>(row.batch), static_cast<std::int32_t>(row.head),
                     static_cast<std::int32_t>(row.query), 0};
    for (; at.kv_idx < weights.extent(1); ++at.kv_idx) *weight++ *= static_cast<T>(mask.factor(at));
  }
}

}  // namespace

template <class T>
BasicAttentionOptions<T> operator_options(const AttendOptions<T>& options,
                                          const heed::Dropout& dropout) {
  BasicAttentionOptions<T> bound{.mask = options.mask,
                                 .score_mod = options.score_mod,
                                 .dropout = dropout,
                                 .query_offset = options.query_offset};
  for (std::size_t i = 0; i < kLearnable<T>.size(); ++i) {
    const Variable<T>& term = options.terms.*LearnedTerms<T>::kAll[i];
    const Learnable<T>& option = kLearnable<T>[i];
    if (term.is_defined() && option.is_option_set(bound)) option.set(bound, term.value());
  }
  return bound;
}

template <class T>
Tensor<T> wanted_weights(const Heads<T>& query, const Heads<T>& key, const AttendOptions<T>& wanted,
                         const BasicAttentionOptions<T>& options) {
  if (!wanted.return_attention && wanted.rows.empty()) return {};
  refuse_divided("scaled_dot_product_attention with weights to look at");
  const auto q = query.view();
  const auto k = key.view();
  const auto rows = wanted.return_attention ? all_rows(q.shape()) : wanted.rows;
  Tensor<T> weights = attention_weights(q, k, rows, options);
  drop(weights, rows, options.dropout);
  if (!wanted.return_attention) return weights;
  return std::move(weights).reshaped({q.extent(0), q.extent(1), q.extent(2), k.extent(2)});
}

template <class T>
Attended<T> scaled_dot_product_attention(const Variable<T>& query, const Variable<T>& key,
                                         const Variable<T>& value, const AttendOptions<T>& options,
                                         const heed::Dropout& dropout) {
  const BasicAttentionOptions<T> bound = operator_options(options, dropout);
  return {attention(query, key, value, bound, options.terms),
          wanted_weights<T>({query}, {key}, options, bound)};
}

template Tensor<float> wanted_weights(const Heads<float>&, const Heads<float>&,
                                      const AttendOptions<float>&, const AttentionOptions&);
template Tensor<double> wanted_weights(const Heads<double>&, const Heads<double>&,
                                       const AttendOptions<double>&, const AttentionOptions64&);
template AttentionOptions operator_options(const AttendOptions<float>&, const heed::Dropout&);
template AttentionOptions64 operator_options(const AttendOptions<double>&, const heed::Dropout&);
template HEED_API Attended<float> scaled_dot_product_attention(const Variable<float>&,
                                                               const Variable<float>&,
                                                               const Variable<float>&,
                                                               const AttendOptions<float>&,
                                                               const heed::Dropout&);
template HEED_API Attended<double> scaled_dot_product_attention(const Variable<double>&,
                                                                const Variable<double>&,
                                                                const Variable<double>&,
                                                                const AttendOptions<double>&,
                                                                const heed::Dropout&);
template class ScaledDotProductAttention<float>;
template class ScaledDotProductAttention<double>;

}}}  // namespace heed::v0::nn
