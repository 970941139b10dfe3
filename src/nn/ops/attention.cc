#include "heed/attention.h"

#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "heed/reference.h"

namespace heed::inline v0::nn {

namespace {

// What the backward pass of attention is given beside the gradient.
template <class T>
struct SavedAttention {
  Saved<T> query, key, value, bias, sinks;
  BasicAttentionOptions<T> options;

  // Options refer to bias and sinks, whose memory is theirs only as long as they are saved.
  BasicAttentionOptions<T> bound_options() const {
    BasicAttentionOptions<T> bound = options;
    if (bias.is_defined()) bound.bias = bias.view();
    if (sinks.is_defined()) bound.sinks = sinks.view();
    return bound;
  }
};

// The one place that chooses how attention is differentiated.
template <class T>
reference::Gradients<T> gradients_of(TensorView<const T> grad_out, const SavedAttention<T>& saved) {
  return reference::attention_backward(grad_out, saved.query.view(), saved.key.view(),
                                       saved.value.view(), saved.bound_options());
}

}  // namespace

template <class T>
Variable<T> attention(const Variable<T>& query, const Variable<T>& key, const Variable<T>& value,
                      const BasicAttentionOptions<T>& options, const LearnedTerms<T>& learned) {
  const SavedAttention<T> saved{Saved(query),        Saved(key),           Saved(value),
                                Saved(learned.bias), Saved(learned.sinks), options};
  auto out = heed::attention(query.value(), key.value(), value.value(), saved.bound_options());
  return record<T>("attention", std::move(out), {query, key, value, learned.bias, learned.sinks},
                   [saved](Step<T>& step) {
                     reference::Gradients<T> grads = gradients_of(step.grad(), saved);
                     step.give(0, std::move(grads.query));
                     step.give(1, std::move(grads.key));
                     step.give(2, std::move(grads.value));
                     step.give(3, std::move(grads.bias));
                     step.give(4, std::move(grads.sinks));
                   });
}

template HEED_API Variable<float> attention(const Variable<float>&, const Variable<float>&,
                                            const Variable<float>&, const AttentionOptions&,
                                            const LearnedTerms<float>&);
template HEED_API Variable<double> attention(const Variable<double>&, const Variable<double>&,
                                             const Variable<double>&, const AttentionOptions64&,
                                             const LearnedTerms<double>&);

}  // namespace heed::inline v0::nn
