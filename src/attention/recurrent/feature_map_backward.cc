// The backward pass of attention by feature maps: gradients of queries from running sums over keys
// in forward order, those of keys and values from running sums over queries in reverse.
#include <algorithm>
#include <vector>

#include "attention/request/linear_attention.h"
#include "attention/request/request.h"
#include "core/float_environment.h"
#include "heed/core/cancellation.h"
#include "heed/core/parallel.h"

namespace heed { inline namespace v0 { namespace recurrent { namespace {

template <class Real>
struct FeatureMapProblem {
  AttentionShapes shapes;
  FeatureMapOptions options;
  TensorView<const Real> grad_out, query, key, value;

  std::int64_t heads_per_kv_head() const { return shapes.num_heads / shapes.num_kv_heads; }
  // The sum of weights is the result of a query for one more dimension, in which all values are 1.
  std::int64_t width() const { return shapes.value_dim + (options.normalized ? 1 : 0); }
};

// One key head of one batch entry, and the query heads that read it.
template <class Real>
class FeatureMapHead {
 public:
  FeatureMapHead(const FeatureMapProblem<Real>& problem, std::int64_t batch, std::int64_t kv_head,
                 FeatureMapGradients<Real>& gradients)
      : in_(problem),
        batch_(batch),
        kv_head_(kv_head),
        gradients_(gradients),
        width_(problem.width()),
        sums_(static_cast<std::size_t>(problem.shapes.head_dim * width_)),
        value_(static_cast<std::size_t>(width_), Real{1}),
        grad_sums_({problem.heads_per_kv_head(), problem.shapes.q_len, width_}) {}

  void run() {
    const AttentionShapes& shapes = in_.shapes;
    std::int64_t seen = 0;
    for (std::int64_t t = 0; t < shapes.q_len; ++t) {
      const std::int64_t end = in_.options.causal ? t + 1 : shapes.kv_len;
      for (; seen < end; ++seen) take_in(seen);
      for (std::int64_t g = 0; g < in_.heads_per_kv_head(); ++g) query_backward(g, t);
    }
    std::fill(sums_.begin(), sums_.end(), Real{0});
    std::int64_t first = shapes.q_len;
    for (std::int64_t t = shapes.kv_len - 1; t >= 0; --t) {
      const std::int64_t begin = in_.options.causal ? t : 0;
      while (first > begin) collect(--first);
      key_backward(t);
    }
  }

 private:
  std::int64_t head(std::int64_t g) const { return kv_head_ * in_.heads_per_kv_head() + g; }
  Real feature_of(const TensorView<const Real>& view, std::int64_t head, std::int64_t t,
                  std::int64_t i) const {
    return feature(in_.options.feature_map, view(batch_, head, t, i));
  }
  Real* sums(std::int64_t i) { return sums_.data() + i * width_; }
  Real* grad_sums(std::int64_t g, std::int64_t t) { return &grad_sums_(g, t, 0); }

  // The value with a 1 appended.
  const Real* value(std::int64_t t) {
    for (std::int64_t j = 0; j < in_.shapes.value_dim; ++j) {
      value_[static_cast<std::size_t>(j)] = in_.value(batch_, kv_head_, t, j);
    }
    return value_.data();
  }

  void take_in(std::int64_t t) {
    const Real* numbers = value(t);
    for (std::int64_t i = 0; i < in_.shapes.head_dim; ++i) {
      const Real factor = feature_of(in_.key, kv_head_, t, i);
      for (std::int64_t j = 0; j < width_; ++j) sums(i)[j] += factor * numbers[j];
    }
  }

  // The derivatives of the loss with respect to the query's results before division: the
  // numerators, then the denominator.
  void read_backward(std::int64_t g, std::int64_t t) {
    Real* grads = grad_sums(g, t);
    const std::int64_t dim = in_.shapes.value_dim;
    for (std::int64_t j = 0; j < dim; ++j) grads[j] = in_.grad_out(batch_, head(g), t, j);
    if (!in_.options.normalized) return;
    std::vector<Real> read(static_cast<std::size_t>(width_));
    for (std::int64_t i = 0; i < in_.shapes.head_dim; ++i) {
      const Real factor = feature_of(in_.query, head(g), t, i);
      for (std::int64_t j = 0; j < width_; ++j) {
        read[static_cast<std::size_t>(j)] += factor * sums(i)[j];
      }
    }
    const Real weight = read.back();
    grads[dim] = 0;
    for (std::int64_t j = 0; j < dim; ++j) {
      grads[j] = weight == 0 ? 0 : grads[j] / weight;
      if (weight != 0) grads[dim] -= grads[j] * read[static_cast<std::size_t>(j)] / weight;
    }
  }

  void query_backward(std::int64_t g, std::int64_t t) {
    check_cancelled();
    read_backward(g, t);
    const Real* grads = grad_sums(g, t);
    for (std::int64_t i = 0; i < in_.shapes.head_dim; ++i) {
      Real sum = 0;
      for (std::int64_t j = 0; j < width_; ++j) sum += sums(i)[j] * grads[j];
      const Real x = in_.query(batch_, head(g), t, i);
      gradients_.query(batch_, head(g), t, i) =
          sum * feature_derivative(in_.options.feature_map, x);
    }
  }

  // Adds the queries at t to the sums in reverse order.
  void collect(std::int64_t t) {
    for (std::int64_t g = 0; g < in_.heads_per_kv_head(); ++g) {
      const Real* grads = grad_sums(g, t);
      for (std::int64_t i = 0; i < in_.shapes.head_dim; ++i) {
        const Real factor = feature_of(in_.query, head(g), t, i);
        for (std::int64_t j = 0; j < width_; ++j) sums(i)[j] += factor * grads[j];
      }
    }
  }

  void key_backward(std::int64_t t) {
    check_cancelled();
    const Real* numbers = value(t);
    for (std::int64_t i = 0; i < in_.shapes.head_dim; ++i) {
      const Real factor = feature_of(in_.key, kv_head_, t, i);
      Real sum = 0;
      for (std::int64_t j = 0; j < width_; ++j) sum += sums(i)[j] * numbers[j];
      for (std::int64_t j = 0; j < in_.shapes.value_dim; ++j) {
        gradients_.value(batch_, kv_head_, t, j) += factor * sums(i)[j];
      }
      const Real x = in_.key(batch_, kv_head_, t, i);
      gradients_.key(batch_, kv_head_, t, i) = sum * feature_derivative(in_.options.feature_map, x);
    }
  }

  const FeatureMapProblem<Real>& in_;
  std::int64_t batch_;
  std::int64_t kv_head_;
  FeatureMapGradients<Real>& gradients_;
  std::int64_t width_;
  std::vector<Real> sums_;  // [head_dim, width], over keys, then over queries
  std::vector<Real> value_;
  Tensor<Real> grad_sums_;  // [heads_per_kv_head, q_len, width]
};

template <class Real>
FeatureMapGradients<Real> feature_map_backward(const FeatureMapProblem<Real>& problem) {
  const AttentionShapes& shapes = problem.shapes;
  check_tensor("feature_map_attention_backward", "grad_out", problem.grad_out,
               {shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim});
  FeatureMapGradients<Real> gradients{Tensor<Real>(problem.query.shape()),
                                      Tensor<Real>(problem.key.shape()),
                                      Tensor<Real>(problem.value.shape())};
  parallel_for(
      0, shapes.batch * shapes.num_kv_heads, 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) {
          FeatureMapHead<Real>(problem, i / shapes.num_kv_heads, i % shapes.num_kv_heads, gradients)
              .run();
        }
      });
  return gradients;
}

}  // namespace

}}}  // namespace heed::v0::recurrent

namespace heed { inline namespace v0 {

FeatureMapGradients<float> feature_map_attention_backward(FloatView grad_out, FloatView query,
                                                          FloatView key, FloatView value,
                                                          const FeatureMapOptions& options) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "feature_map_attention_backward";
  return recurrent::feature_map_backward<float>(
      {recurrent::check_feature_map(kFunction, query, key, value, options), options, grad_out,
       query, key, value});
}

FeatureMapGradients<double> feature_map_attention_backward(DoubleView grad_out, DoubleView query,
                                                           DoubleView key, DoubleView value,
                                                           const FeatureMapOptions& options) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "feature_map_attention_backward";
  return recurrent::feature_map_backward<double>(
      {recurrent::check_feature_map(kFunction, query, key, value, options), options, grad_out,
       query, key, value});
}

}}  // namespace heed::v0
