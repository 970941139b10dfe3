// Weights of chosen rows and statistics of all: check, decide, compute.
#include "heed/statistics.h"

#include "attention/floats.h"
#include "attention/reference/statistics.h"
#include "heed/reference.h"

namespace heed::inline v0 {

namespace {

template <class T>
Tensor<float> weights(TensorView<const T> query, TensorView<const T> key,
                      std::span<const AttentionRow> rows, const AttentionOptions& options) {
  constexpr const char* kFunction = "attention_weights";
  const AttentionShapes shapes = check_shapes(kFunction, query, key);
  const Terms<float> terms = check_weight_terms(kFunction, shapes, options);
  check_rows(kFunction, rows, terms.shape);
  const Tensor<float> tensors[] = {to_floats(query), to_floats(key)};
  return reference::weights_of_rows<float>({{terms}, tensors[0], tensors[1], {}}, rows);
}

template <class T>
AttentionStatistics statistics(TensorView<const T> query, TensorView<const T> key,
                               const AttentionOptions& options,
                               const StatisticsOptions& statistics) {
  constexpr const char* kFunction = "attention_statistics";
  const AttentionShapes shapes = check_shapes(kFunction, query, key);
  const Terms<float> terms = check_weight_terms(kFunction, shapes, options);
  check_statistics(kFunction, statistics);
  const Tensor<float> tensors[] = {to_floats(query), to_floats(key)};
  return reference::statistics_of<float>({{terms}, tensors[0], tensors[1], {}}, statistics.top_k);
}

}  // namespace

Tensor<float> attention_weights(FloatView query, FloatView key, std::span<const AttentionRow> rows,
                                const AttentionOptions& options) {
  return weights(query, key, rows, options);
}

Tensor<float> attention_weights(Float16View query, Float16View key,
                                std::span<const AttentionRow> rows,
                                const AttentionOptions& options) {
  return weights(query, key, rows, options);
}

Tensor<float> attention_weights(BFloat16View query, BFloat16View key,
                                std::span<const AttentionRow> rows,
                                const AttentionOptions& options) {
  return weights(query, key, rows, options);
}

Tensor<double> attention_weights(DoubleView query, DoubleView key,
                                 std::span<const AttentionRow> rows,
                                 const AttentionOptions64& options) {
  return reference::attention_weights(query, key, rows, options);
}

AttentionStatistics attention_statistics(FloatView query, FloatView key,
                                         const AttentionOptions& options,
                                         const StatisticsOptions& statistics) {
  return heed::statistics(query, key, options, statistics);
}

AttentionStatistics attention_statistics(Float16View query, Float16View key,
                                         const AttentionOptions& options,
                                         const StatisticsOptions& statistics) {
  return heed::statistics(query, key, options, statistics);
}

AttentionStatistics attention_statistics(BFloat16View query, BFloat16View key,
                                         const AttentionOptions& options,
                                         const StatisticsOptions& statistics) {
  return heed::statistics(query, key, options, statistics);
}

BasicAttentionStatistics<double> attention_statistics(DoubleView query, DoubleView key,
                                                      const AttentionOptions64& options,
                                                      const StatisticsOptions& statistics) {
  return reference::attention_statistics(query, key, options, statistics);
}

}  // namespace heed::inline v0
