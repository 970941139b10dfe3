// attention_weights() and attention_statistics(): check, plan, run.
#include "heed/attention/statistics.h"

#include "attention/plan/plan.h"
#include "attention/request/call.h"
#include "core/float_environment.h"

namespace heed { inline namespace v0 {

namespace {

template <class T>
Tensor<Computed<T>> weights(TensorView<const T> query, TensorView<const T> key,
                            std::span<const AttentionRow> rows,
                            const BasicAttentionOptions<Computed<T>>& options) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "attention_weights";
  const auto request =
      check_weight_request(kFunction, check_shapes(kFunction, query, key), options);
  check_rows(kFunction, rows, request.scores());
  return prepare(request, Pass::kWeights)->weights(call_of(request, query, key), rows);
}

template <class T>
BasicAttentionStatistics<Computed<T>> statistics(TensorView<const T> query, TensorView<const T> key,
                                                 const BasicAttentionOptions<Computed<T>>& options,
                                                 const StatisticsOptions& statistics) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "attention_statistics";
  const auto request =
      check_weight_request(kFunction, check_shapes(kFunction, query, key), options);
  check_statistics(kFunction, statistics);
  return prepare(request, Pass::kWeights)
      ->statistics(call_of(request, query, key), statistics.top_k);
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
  return weights(query, key, rows, options);
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
  return heed::statistics(query, key, options, statistics);
}

}}  // namespace heed::v0
