#include "heed/attention.h"

#include "heed/attention_backward.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"

namespace heed::inline v0::nn {

namespace {

// Options refer to learned terms, whose memory is theirs only as long as they are saved.
template <class T>
struct SavedTerms {
  Saved<T> alibi_slopes, bias, sinks;
  BasicAttentionOptions<T> options;

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
  const SavedTerms<T> terms{Saved(learned.alibi_slopes), Saved(learned.bias), Saved(learned.sinks),
                            options};
  auto forward =
      attention_with_lse(query.value(), key.value(), value.value(), terms.bound_options());
  Value<T> out(std::move(forward.out));
  const Saved<T> lse(Value<T>(std::move(forward.lse)));
  return record<T>("attention", out,
                   {query, key, value, learned.alibi_slopes, learned.bias, learned.sinks},
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
