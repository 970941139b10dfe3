#include <fmt/format.h>

#include <vector>

#include "core/float_environment.h"
#include "heed/core/dual.h"
#include "heed/core/parallel.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "nn/divided_tokens.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

void check_scores(const Shape& keys, const Shape& queries, const Shape& weight) {
  if (keys.rank() == 3 && queries.rank() == 3 && weight.rank() == 1 && keys[0] == queries[0] &&
      keys[2] == weight[0] && queries[2] == weight[0]) {
    return;
  }
  throw InvalidArgument(
      fmt::format("additive_scores: keys have shape {}, queries {} and weight {}; expected [batch, "
                  "kv_len, dim], [batch, q_len, dim] and [dim]",
                  to_string(keys), to_string(queries), to_string(weight)));
}

// The operands of one batch entry.
template <class T>
struct Entry {
  const T* keys;     // [kv_len, dim]
  const T* queries;  // [q_len, dim]
  const T* weight;   // [dim]
  std::int64_t kv_len, q_len, dim;
};

// Calls body(query, key) for each pair, with tanh(key + query) in `squashed`.
template <class T, class F>
void for_each_pair(const Entry<T>& entry, std::vector<T>& squashed, const F& body) {
  squashed.resize(static_cast<std::size_t>(entry.dim));
  T* const out = squashed.data();
  for (std::int64_t q = 0; q < entry.q_len; ++q) {
    const T* const query = entry.queries + q * entry.dim;
    for (std::int64_t k = 0; k < entry.kv_len; ++k) {
      const T* const key = entry.keys + k * entry.dim;
      for (std::int64_t a = 0; a < entry.dim; ++a) out[a] = heed::tanh(key[a] + query[a]);
      body(q, k);
    }
  }
}

template <class T>
class Scores {
 public:
  Scores(TensorView<const T> keys, TensorView<const T> queries, TensorView<const T> weight)
      : keys_(keys), queries_(queries), weight_(weight) {}

  Tensor<T> forward() const {
    auto scores = Tensor<T>::uninitialized(shape());
    for_each_entry([&](std::int64_t index, const Entry<T>& entry) {
      T* const out = scores.data() + index * entry.q_len * entry.kv_len;
      std::vector<T> squashed;
      for_each_pair(entry, squashed, [&](std::int64_t q, std::int64_t k) {
        double sum = 0;
        for (std::int64_t a = 0; a < entry.dim; ++a) {
          sum += static_cast<double>(entry.weight[a]) * squashed[static_cast<std::size_t>(a)];
        }
        out[q * entry.kv_len + k] = static_cast<T>(sum);
      });
    });
    return scores;
  }

  struct Gradients {
    Tensor<T> keys, queries, weight;
  };
  Gradients backward(TensorView<const T> grad) const {
    Gradients grads{Tensor<T>(keys_.shape()), Tensor<T>(queries_.shape()),
                    Tensor<T>(weight_.shape())};
    const std::int64_t dim = weight_.extent(0);
    Tensor<double> weight_sums({keys_.extent(0), dim});
    for_each_entry([&](std::int64_t index, const Entry<T>& entry) {
      const T* const of_score = grad.data() + index * entry.q_len * entry.kv_len;
      T* const of_keys = grads.keys.data() + index * entry.kv_len * dim;
      T* const of_queries = grads.queries.data() + index * entry.q_len * dim;
      double* const of_weight = weight_sums.data() + index * dim;
      std::vector<T> squashed;
      for_each_pair(entry, squashed, [&](std::int64_t q, std::int64_t k) {
        const T g = of_score[q * entry.kv_len + k];
        const T* const y = squashed.data();
        for (std::int64_t a = 0; a < dim; ++a) of_weight[a] += g * y[a];
        for (std::int64_t a = 0; a < dim; ++a) {
          const T of_sum = g * entry.weight[a] * (1 - y[a] * y[a]);
          of_keys[k * dim + a] += of_sum;
          of_queries[q * dim + a] += of_sum;
        }
      });
    });
    for (std::int64_t a = 0; a < dim; ++a) {
      double sum = 0;
      for (std::int64_t index = 0; index < keys_.extent(0); ++index) sum += weight_sums(index, a);
      grads.weight(a) = static_cast<T>(sum);
    }
    return grads;
  }

 private:
  Shape shape() const { return {keys_.extent(0), queries_.extent(1), keys_.extent(1)}; }

  template <class F>
  void for_each_entry(const F& body) const {
    const std::int64_t dim = weight_.extent(0);
    const std::int64_t kv_len = keys_.extent(1);
    const std::int64_t q_len = queries_.extent(1);
    parallel_for(0, keys_.extent(0), 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t index = first; index < last; ++index) {
        body(index, {keys_.data() + index * kv_len * dim, queries_.data() + index * q_len * dim,
                     weight_.data(), kv_len, q_len, dim});
      }
    });
  }

  TensorView<const T> keys_;
  TensorView<const T> queries_;
  TensorView<const T> weight_;
};

}  // namespace

template <class T>
Variable<T> additive_scores(const Variable<T>& keys, const Variable<T>& queries,
                            const Variable<T>& weight) {
  const FloatEnvironment environment;
  refuse_divided("additive_scores");
  check_scores(keys.shape(), queries.shape(), weight.shape());
  return record<T>(
      "additive_scores", Scores<T>(keys.value(), queries.value(), weight.value()).forward(),
      {keys, queries, weight},
      [keys = Saved(keys), queries = Saved(queries), weight = Saved(weight)](Step<T>& step) {
        auto grads = Scores<T>(keys.view(), queries.view(), weight.view()).backward(step.grad());
        step.give(0, std::move(grads.keys));
        step.give(1, std::move(grads.queries));
        step.give(2, std::move(grads.weight));
      });
}

template HEED_API Variable<float> additive_scores(const Variable<float>&, const Variable<float>&,
                                                  const Variable<float>&);
template HEED_API Variable<double> additive_scores(const Variable<double>&, const Variable<double>&,
                                                   const Variable<double>&);

}}}  // namespace heed::v0::nn
