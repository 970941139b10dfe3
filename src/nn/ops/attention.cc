#include "heed/attention.h"

#include <optional>
#include <utility>
#include <vector>

#include "heed/attention_backward.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"

namespace heed::inline v0::nn {

namespace {

// `learned`, or else a constant of its own with what `given` shows.
template <class T>
Variable<T> owned(const Variable<T>& learned, const std::optional<TensorView<const T>>& given) {
  return learned.is_defined() || !given ? learned : Variable<T>(to_tensor(*given));
}

// What broadcasts to `view`, without the repetitions.
template <class T>
std::optional<TensorView<const T>> once(std::optional<TensorView<const T>> view) {
  for (int dim = 0; view && !view->empty() && dim < view->rank(); ++dim) {
    if (view->stride(dim) == 0) view = view->slice(dim, 0, 1);
  }
  return view;
}

template <class T>
LearnedTerms<T> owned(const BasicAttentionOptions<T>& options, const LearnedTerms<T>& learned) {
  return {owned(learned.alibi_slopes, options.alibi_slopes),
          owned(learned.bias, once(options.bias)), owned(learned.sinks, options.sinks)};
}

// Options refer to these terms, whose memory is theirs only as long as they are saved.
template <class T>
struct SavedTerms {
  BasicAttentionOptions<T> options;
  Saved<T> alibi_slopes, bias, sinks;

  SavedTerms(const BasicAttentionOptions<T>& all_options, const LearnedTerms<T>& terms)
      : options(all_options),
        alibi_slopes(terms.alibi_slopes),
        bias(terms.bias),
        sinks(terms.sinks) {}

  BasicAttentionOptions<T> bound_options() const {
    BasicAttentionOptions<T> bound = options;
    if (alibi_slopes.is_defined()) bound.alibi_slopes = alibi_slopes.view();
    if (bias.is_defined()) bound.bias = bias.view();
    if (sinks.is_defined()) bound.sinks = sinks.view();
    return bound;
  }
};

}  // namespace

template <class T>
Variable<T> attention(const Variable<T>& query, const Variable<T>& key, const Variable<T>& value,
                      const BasicAttentionOptions<T>& options, const LearnedTerms<T>& learned) {
  const std::vector<Variable<T>> inputs{query,        key,          value, learned.alibi_slopes,
                                        learned.bias, learned.sinks};
  // What is recorded must not end before backward().
  const SavedTerms<T> terms(options, is_recorded(inputs) ? owned(options, learned) : learned);
  auto forward =
      attention_with_lse(query.value(), key.value(), value.value(), terms.bound_options());
  Value<T> out(std::move(forward.out));
  const Saved<T> lse(Value<T>(std::move(forward.lse)));
  return record<T>("attention", out, inputs,
                   [terms, q = Saved(query), k = Saved(key), v = Saved(value), o = Saved(out),
                    lse](Step<T>& step) {
                     AttentionGradients<T> grads =
                         attention_backward(step.grad(), q.view(), k.view(), v.view(),
                                            {o.view(), lse.view()}, terms.bound_options());
                     step.give(0, std::move(grads.query));
                     step.give(1, std::move(grads.key));
                     step.give(2, std::move(grads.value));
                     step.give(3, std::move(grads.alibi_slopes));
                     step.give(4, std::move(grads.bias));
                     step.give(5, std::move(grads.sinks));
                   });
}

template HEED_API Variable<float> attention(const Variable<float>&, const Variable<float>&,
                                            const Variable<float>&, const AttentionOptions&,
                                            const LearnedTerms<float>&);
template HEED_API Variable<double> attention(const Variable<double>&, const Variable<double>&,
                                             const Variable<double>&, const AttentionOptions64&,
                                             const LearnedTerms<double>&);

}  // namespace heed::inline v0::nn
