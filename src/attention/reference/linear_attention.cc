// Linear attention token by token, and feature maps by their definition, in plain loops.
#include "attention/request/linear_attention.h"

#include <cmath>

#include "core/float_environment.h"
#include "heed/attention/reference.h"
#include "heed/core/cancellation.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 {

namespace {

// The recurrence of one state in one batch entry.
template <class Real>
class Head {
 public:
  Head(const recurrent::Problem<Real>& problem, std::int64_t batch, std::int64_t kv_head,
       TensorView<Real> state)
      : problem_(problem), batch_(batch), kv_head_(kv_head), state_(state) {}

  // Makes S the state after token t.
  void update(std::int64_t t) {
    check_cancelled();
    if (problem_.decay) {
      for (std::int64_t i = 0; i < problem_.head_dim; ++i) {
        const Real kept = elementary::exp((*problem_.decay)(batch_, kv_head_, t, i));
        for (std::int64_t j = 0; j < problem_.value_dim; ++j) state_(i, j) *= kept;
      }
    }
    for (std::int64_t j = 0; j < problem_.value_dim; ++j) {
      Real written = problem_.value(batch_, kv_head_, t, j);
      if (problem_.beta) {
        Real stored = 0;
        for (std::int64_t i = 0; i < problem_.head_dim; ++i) stored += key(t, i) * state_(i, j);
        written = (*problem_.beta)(batch_, kv_head_, t) * (written - stored);
      }
      for (std::int64_t i = 0; i < problem_.head_dim; ++i) state_(i, j) += key(t, i) * written;
    }
  }

  // out = scale · Sᵀ q
  void read(std::int64_t head, std::int64_t t, TensorView<Real> out) const {
    for (std::int64_t j = 0; j < problem_.value_dim; ++j) {
      Real sum = 0;
      for (std::int64_t i = 0; i < problem_.head_dim; ++i) {
        sum += problem_.query(batch_, problem_.query_head(head), t, i) * state_(i, j);
      }
      out(j) = problem_.scale * sum;
    }
  }

 private:
  Real key(std::int64_t t, std::int64_t i) const {
    return problem_.key(batch_, problem_.key_head(kv_head_), t, i);
  }

  const recurrent::Problem<Real>& problem_;
  std::int64_t batch_;
  std::int64_t kv_head_;
  TensorView<Real> state_;  // [head_dim, value_dim]
};

template <class Real>
Tensor<Real> attend_by_features(TensorView<const Real> query, TensorView<const Real> key,
                                TensorView<const Real> value, const FeatureMapOptions& options) {
  const AttentionShapes sizes =
      recurrent::check_feature_map("feature_map_attention", query, key, value, options);
  Tensor<Real> out({sizes.batch, sizes.num_heads, sizes.q_len, sizes.value_dim});
  const auto similarity = [&](std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) {
    const std::int64_t kv_head = h / (sizes.num_heads / sizes.num_kv_heads);
    Real sum = 0;
    for (std::int64_t i = 0; i < sizes.head_dim; ++i) {
      sum += recurrent::feature(options.feature_map, query(b, h, q, i)) *
             recurrent::feature(options.feature_map, key(b, kv_head, k, i));
    }
    return sum;
  };
  const auto attend = [&](std::int64_t b, std::int64_t h, std::int64_t q) {
    check_cancelled();
    const std::int64_t end = options.causal ? q + 1 : sizes.kv_len;
    const std::int64_t kv_head = h / (sizes.num_heads / sizes.num_kv_heads);
    Real sum = 0;
    for (std::int64_t k = 0; k < end; ++k) {
      const Real weight = similarity(b, h, q, k);
      sum += weight;
      for (std::int64_t j = 0; j < sizes.value_dim; ++j) {
        out(b, h, q, j) += weight * value(b, kv_head, k, j);
      }
    }
    if (!options.normalized) return;
    for (std::int64_t j = 0; j < sizes.value_dim; ++j) {
      out(b, h, q, j) = sum == 0 ? 0 : out(b, h, q, j) / sum;
    }
  };
  for (std::int64_t b = 0; b < sizes.batch; ++b)
    for (std::int64_t h = 0; h < sizes.num_heads; ++h)
      for (std::int64_t q = 0; q < sizes.q_len; ++q) attend(b, h, q);
  return out;
}

}  // namespace

namespace recurrent {

template <class Real>
LinearAttentionOutput<Real> attend_by_reference(const Problem<Real>& problem) {
  LinearAttentionOutput<Real> result{Tensor<Real>(problem.out()), Tensor<Real>(problem.state())};
  if (problem.initial_state) result.state = to_tensor(*problem.initial_state);
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    for (std::int64_t kv_head = 0; kv_head < problem.num_kv_heads; ++kv_head) {
      Head<Real> recurrence(problem, batch, kv_head,
                            result.state.view().select(0, batch).select(0, kv_head));
      const std::int64_t first_head = kv_head * problem.heads_per_kv_head;
      for (std::int64_t t = 0; t < problem.length; ++t) {
        recurrence.update(t);
        for (std::int64_t g = 0; g < problem.heads_per_kv_head; ++g) {
          const auto out = result.out.view().select(0, batch).select(0, first_head + g);
          recurrence.read(first_head + g, t, out.select(0, t));
        }
      }
    }
  }
  return result;
}

template LinearAttentionOutput<float> attend_by_reference(const Problem<float>&);
template LinearAttentionOutput<double> attend_by_reference(const Problem<double>&);

}  // namespace recurrent

namespace reference {

namespace {

template <class Real>
LinearAttentionOutput<Real> attend(TensorView<const Real> query, TensorView<const Real> key,
                                   TensorView<const Real> value,
                                   const BasicLinearAttentionOptions<Real>& options) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "linear_attention";
  const recurrent::Sizes sizes = recurrent::check_sizes(kFunction, query, key, value);
  return recurrent::attend_by_reference<Real>(
      {sizes, recurrent::check_terms(kFunction, sizes, options), query, key, value});
}

}  // namespace

LinearAttentionOutput<float> linear_attention(FloatView query, FloatView key, FloatView value,
                                              const LinearAttentionOptions& options) {
  return attend<float>(query, key, value, options);
}
LinearAttentionOutput<double> linear_attention(DoubleView query, DoubleView key, DoubleView value,
                                               const LinearAttentionOptions64& options) {
  return attend<double>(query, key, value, options);
}

Tensor<float> feature_map_attention(FloatView query, FloatView key, FloatView value,
                                    const FeatureMapOptions& options) {
  const FloatEnvironment environment;
  return attend_by_features<float>(query, key, value, options);
}
Tensor<double> feature_map_attention(DoubleView query, DoubleView key, DoubleView value,
                                     const FeatureMapOptions& options) {
  const FloatEnvironment environment;
  return attend_by_features<double>(query, key, value, options);
}

}  // namespace reference

}}  // namespace heed::v0
