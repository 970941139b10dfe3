#include <utility>

#include "core/float_environment.h"
#include "heed/attention/linear_attention.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "nn/divided_tokens.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/heads.h"
#include "nn/ops/shapes.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// Moves heads [batch, num_heads, length, dim] side by side: [batch, length, num_heads · dim].
template <class T>
Tensor<T> side_by_side(const Tensor<T>& heads, const HeadColumns& columns) {
  auto out = uninitialized<T>({heads.extent(0), heads.extent(2), columns.width()});
  copy_into<T>(heads_in(out.view(), columns), heads);
  return out;
}

}  // namespace

template <class T>
Variable<T> feature_map_attention(const Heads<T>& query, const Heads<T>& key, const Heads<T>& value,
                                  const FeatureMapOptions& options) {
  const FloatEnvironment environment;
  refuse_divided("feature_map_attention");
  check_heads("feature_map_attention", "query", query);
  check_heads("feature_map_attention", "key", key);
  check_heads("feature_map_attention", "value", value);
  const SavedHeads<T> q(query);
  const SavedHeads<T> k(key);
  const SavedHeads<T> v(value);
  const HeadColumns columns{.num_heads = q.view().extent(1), .head_dim = v.view().extent(3)};
  Tensor<T> out = heed::feature_map_attention(q.view(), k.view(), v.view(), options);
  if (query.source.rank() == 3) out = side_by_side(out, columns);
  return record<T>("feature_map_attention", std::move(out),
                   {query.source, key.source, value.source},
                   [q, k, v, columns, options](Step<T>& step) {
                     FeatureMapGradients<T> grads = feature_map_attention_backward(
                         heads_in(step.grad(), columns), q.view(), k.view(), v.view(), options);
                     give_heads(step, 0, q, std::move(grads.query));
                     give_heads(step, 1, k, std::move(grads.key));
                     give_heads(step, 2, v, std::move(grads.value));
                   });
}

template HEED_API Variable<float> feature_map_attention(const Heads<float>&, const Heads<float>&,
                                                        const Heads<float>&,
                                                        const FeatureMapOptions&);
template HEED_API Variable<double> feature_map_attention(const Heads<double>&, const Heads<double>&,
                                                         const Heads<double>&,
                                                         const FeatureMapOptions&);

}}}  // namespace heed::v0::nn
