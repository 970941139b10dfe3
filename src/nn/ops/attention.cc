#include "heed/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/float_environment.h"
#include "heed/attention/backward.h"
#include "heed/attention/plan.h"
#include "heed/distributed/attention.h"
#include "heed/nn/context_parallel.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/heads.h"
#include "nn/ops/shapes.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// Returns `learned`, or if it is undefined a constant with a copy of `given`.
template <class T>
Variable<T> owned(const Variable<T>& learned, const std::optional<TensorView<const T>>& given) {
  return learned.is_defined() || !given ? learned : Variable<T>(to_tensor(*given));
}

// Returns the part of `view` without repetitions; it broadcasts to `view`.
template <class T>
std::optional<TensorView<const T>> once(std::optional<TensorView<const T>> view) {
  for (int dim = 0; view && !view->empty() && dim < view->rank(); ++dim) {
    if (view->stride(dim) == 0) view = view->slice(dim, 0, 1);
  }
  return view;
}

constexpr std::size_t kTerms = std::size(kLearnable<float>);

template <class T>
LearnedTerms<T> owned(const BasicAttentionOptions<T>& options, const LearnedTerms<T>& learned) {
  LearnedTerms<T> all;
  for (std::size_t i = 0; i < kTerms; ++i) {
    const auto term = LearnedTerms<T>::kAll[i];
    all.*term = owned(learned.*term, once(kLearnable<T>[i].get(options)));
  }
  return all;
}

// The options refer to the tensors of the terms, which exist only as long as the terms are saved.
template <class T>
class SavedTerms {
 public:
  SavedTerms(const BasicAttentionOptions<T>& options, const LearnedTerms<T>& terms)
      : options_(options) {
    for (std::size_t i = 0; i < kTerms; ++i) {
      terms_[i] = Saved<T>(terms.*LearnedTerms<T>::kAll[i]);
      const Learnable<T>& term = kLearnable<T>[i];
      if (!terms_[i].is_defined() || term.is_option_set(options)) continue;
      throw InvalidArgument(
          fmt::format("attention: learned.{} is given, but not options.{}, which says its buckets",
                      term.name, term.option));
    }
  }

  BasicAttentionOptions<T> bound_options() const {
    BasicAttentionOptions<T> bound = options_;
    for (std::size_t i = 0; i < kTerms; ++i) {
      if (terms_[i].is_defined()) kLearnable<T>[i].set(bound, terms_[i].view());
    }
    return bound;
  }

 private:
  BasicAttentionOptions<T> options_;
  std::array<Saved<T>, kTerms> terms_;
};

// Runs `compute`, which uses a plan, and renames the plan's functions in its errors to attention().
template <class Compute>
void run_as_attention(const Compute& compute) {
  try {
    compute();
  } catch (const InvalidArgument& error) {
    const std::string_view text = error.what();
    for (const std::string_view function : {"plan:", "AttentionPlan::run:"}) {
      if (!text.starts_with(function)) continue;
      throw InvalidArgument("attention:" + std::string(text.substr(function.size())));
    }
    throw;
  }
}

// The heads in the columns of the result [batch, q_len, num_heads · value_dim].
template <class T>
HeadColumns columns_of_out(const TensorView<const T>& query, const TensorView<const T>& value) {
  return {.num_heads = query.extent(1), .head_dim = value.extent(3)};
}

template <class T>
Tensor<T> make_out(const TensorView<const T>& query, const TensorView<const T>& value) {
  return uninitialized<T>({query.extent(0), query.extent(2), columns_of_out(query, value).width()});
}

// Computes attention_for_backward() if `keeps`, otherwise attention_with_lse(), with the heads of
// `out` side by side: [batch, q_len, num_heads · value_dim].
template <class T>
AttentionOutput<T> attend_side_by_side(const TensorView<const T>& query,
                                       const TensorView<const T>& key,
                                       const TensorView<const T>& value,
                                       const BasicAttentionOptions<T>& options, bool keeps) {
  AttentionOutput<T> result;
  run_as_attention([&] {
    const AttentionPlan decision = plan({.batch = query.extent(0),
                                         .num_heads = query.extent(1),
                                         .num_kv_heads = key.extent(1),
                                         .q_len = query.extent(2),
                                         .kv_len = key.extent(2),
                                         .head_dim = query.extent(3),
                                         .value_dim = value.extent(3),
                                         .dtype = data_type_of<T>(),
                                         .key_stride = key.stride(2),
                                         .value_stride = value.stride(2)},
                                        options);
    result.out = make_out(query, value);
    const Shape rows{query.extent(0), query.extent(1), query.extent(2)};
    result.lse = Tensor<T>::uninitialized(rows);
    result.lse_low = Tensor<T>::uninitialized(rows);
    if (const std::int64_t kept = decision.kept_size(); keeps && kept > 0) {
      result.kept = Tensor<T>::uninitialized({kept});
    }
    decision.run_into({.out = heads_in(result.out.view(), columns_of_out(query, value)),
                       .lse = result.lse,
                       .lse_low = result.lse_low,
                       .kept = result.kept},
                      query, key, value);
  });
  return result;
}

template <class T>
struct Operands {
  SavedHeads<T> query, key, value;
  // True if the operands are all columns of one variable, side by side: a fused projection.
  bool fill_one_source;

  Operands(const Heads<T>& q, const Heads<T>& k, const Heads<T>& v)
      : query(q), key(k), value(v), fill_one_source(are_columns_of_one(q, k, v)) {}

  static bool are_columns_of_one(const Heads<T>& q, const Heads<T>& k, const Heads<T>& v) {
    const bool are_of_one = q.source.node() == k.source.node() &&
                            k.source.node() == v.source.node() && q.source.rank() == 3;
    return are_of_one && q.columns.first == 0 && k.columns.first == q.columns.end() &&
           v.columns.first == k.columns.end() && v.columns.end() == q.source.extent(2);
  }

  // Releases the operands. Called when the gradients are computed and nothing else needs the
  // elements: then arranging the gradients takes less memory than the operands did.
  void forget() {
    for (auto* operand : {&query, &key, &value}) operand->source = {};
  }

  // Adds the gradients of the operands, which are inputs 0, 1 and 2.
  void give(Step<T>& step, AttentionGradients<T>& grads) const {
    if (!fill_one_source) {
      give_heads(step, 0, query, std::move(grads.query));
      give_heads(step, 1, key, std::move(grads.key));
      give_heads(step, 2, value, std::move(grads.value));
    } else if (step.wants(0)) {
      auto whole = uninitialized<T>(query.shape);
      const auto put = [&](const SavedHeads<T>& heads, const Tensor<T>& grad) {
        copy_into<T>(heads_in(whole.view(), heads.columns), grad);
      };
      put(query, std::exchange(grads.query, {}));
      put(key, std::exchange(grads.key, {}));
      put(value, std::exchange(grads.value, {}));
      step.give(0, std::move(whole));
    }
  }
};

// attention_with_lse() of tokens that are divided among ranks, with the heads of `out` in the
// layout of the query.
template <class T>
AttentionOutput<T> attend_divided(Communicator& ranks, const Operands<T>& of,
                                  const BasicAttentionOptions<T>& options) {
  const auto query = of.query.view();
  const auto value = of.value.view();
  AttentionOutput<T> result =
      distributed::attention_with_lse(ranks, query, of.key.view(), value, options);
  if (of.query.shape.rank() == 4) return result;
  const Tensor<T> heads = std::move(result.out);
  result.out = make_out(query, value);
  copy_into<T>(heads_in(result.out.view(), columns_of_out(query, value)), heads);
  return result;
}

// The gradients of divided tokens. Those of terms are equal on every rank; as ranks later sum them,
// all ranks but 0 get zeros.
template <class T>
AttentionGradients<T> gradients_divided(Communicator& ranks, const Operands<T>& of,
                                        const TensorView<const T>& grad_out,
                                        const AttentionOutputView<T>& forward,
                                        const BasicAttentionOptions<T>& options) {
  AttentionGradients<T> grads = distributed::attention_backward(
      ranks, grad_out, of.query.view(), of.key.view(), of.value.view(), forward, options);
  if (ranks.rank() == 0) return grads;
  for (const Learnable<T>& term : kLearnable<T>) {
    Tensor<T>& grad = grads.*term.gradient;
    std::fill_n(grad.data(), grad.num_elements(), T{0});
  }
  return grads;
}

// Returns `heads` [batch, heads, length, dim] as an operand; throws for other ranks.
template <class T>
Heads<T> apart(const char* name, const Variable<T>& heads) {
  if (heads.rank() == 4) return {heads};
  throw InvalidArgument(
      fmt::format("attention: {} has shape {}, expected 4 dimensions [batch, heads, length, dim]",
                  name, to_string(heads.shape())));
}

}  // namespace

template <class T>
Variable<T> attention(const Heads<T>& query, const Heads<T>& key, const Heads<T>& value,
                      const BasicAttentionOptions<T>& options, const LearnedTerms<T>& learned) {
  const FloatEnvironment environment;
  check_heads("attention", "query", query);
  check_heads("attention", "key", key);
  check_heads("attention", "value", value);
  std::vector<Variable<T>> inputs{query.source, key.source, value.source};
  for (const auto term : LearnedTerms<T>::kAll) inputs.push_back(learned.*term);
  // What is recorded must not end before backward().
  const bool records = is_recorded(inputs);
  const SavedTerms<T> terms(options, records ? owned(options, learned) : learned);
  Operands<T> of(query, key, value);
  const auto q = of.query.view();
  const auto k = of.key.view();
  const auto v = of.value.view();
  const ContextParallel* const divided = ContextParallel::current();
  Communicator* const ranks = divided == nullptr ? nullptr : &divided->ranks();
  const BasicAttentionOptions<T> bound = terms.bound_options();
  auto forward = ranks != nullptr           ? attend_divided(*ranks, of, bound)
                 : query.source.rank() == 3 ? attend_side_by_side(q, k, v, bound, records)
                 : records                  ? attention_for_backward(q, k, v, bound)
                                            : attention_with_lse(q, k, v, bound);
  Value<T> out(std::move(forward.out));
  const Saved<T> lse(Value<T>(std::move(forward.lse)));
  const Saved<T> low(Value<T>(std::move(forward.lse_low)));
  Saved<T> kept(Value<T>(std::move(forward.kept)));
  return record<T>("attention", out, inputs,
                   [terms, of, o = Saved(out), lse, low, kept = std::move(kept),
                    at = columns_of_out(q, v), ranks](Step<T>& step) mutable {
                     const auto grad_out = heads_in(step.grad(), at);
                     const AttentionOutputView<T> made{
                         heads_in(o.view(), at), lse.view(), low.view(), {}, kept.view()};
                     AttentionGradients<T> grads =
                         ranks != nullptr
                             ? gradients_divided(*ranks, of, grad_out, made, terms.bound_options())
                             : attention_backward(grad_out, of.query.view(), of.key.view(),
                                                  of.value.view(), made, terms.bound_options());
                     if (step.is_last()) {
                       of.forget();
                       o = {};
                       kept = {};
                     }
                     of.give(step, grads);
                     for (std::size_t i = 0; i < kTerms; ++i) {
                       step.give(3 + i, std::move(grads.*kLearnable<T>[i].gradient));
                     }
                   });
}

template <class T>
Variable<T> attention(const Variable<T>& query, const Variable<T>& key, const Variable<T>& value,
                      const BasicAttentionOptions<T>& options, const LearnedTerms<T>& learned) {
  const FloatEnvironment environment;
  return attention(apart("query", query), apart("key", key), apart("value", value), options,
                   learned);
}

template HEED_API Variable<float> attention(const Heads<float>&, const Heads<float>&,
                                            const Heads<float>&, const AttentionOptions&,
                                            const LearnedTerms<float>&);
template HEED_API Variable<double> attention(const Heads<double>&, const Heads<double>&,
                                             const Heads<double>&, const AttentionOptions64&,
                                             const LearnedTerms<double>&);
template HEED_API Variable<float> attention(const Variable<float>&, const Variable<float>&,
                                            const Variable<float>&, const AttentionOptions&,
                                            const LearnedTerms<float>&);
template HEED_API Variable<double> attention(const Variable<double>&, const Variable<double>&,
                                             const Variable<double>&, const AttentionOptions64&,
                                             const LearnedTerms<double>&);

}}}  // namespace heed::v0::nn
