// Weights of chosen rows and statistics of all: check, decide, compute.
#include "heed/statistics.h"

#include "attention/fused/statistics.h"
#include "attention/fused/weight_block.h"
#include "attention/kernels_for.h"
#include "attention/reference/statistics.h"
#include "heed/parallel.h"
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
  const auto* table = kernels_for(shapes);
  if (table == nullptr) {
    const Floats floats(query, key);
    return reference::weights_of_rows<float>(floats.problem(terms), rows);
  }
  Tensor<float> result({static_cast<std::int64_t>(rows.size()), shapes.kv_len});
  const auto schedule = fused::make_weight_schedule(*table, terms, shapes, num_threads());
  fused::weights_of_rows(job_of(terms, query, key), schedule, rows, result);
  return result;
}

template <class T>
AttentionStatistics statistics(TensorView<const T> query, TensorView<const T> key,
                               const AttentionOptions& options,
                               const StatisticsOptions& statistics) {
  constexpr const char* kFunction = "attention_statistics";
  const AttentionShapes shapes = check_shapes(kFunction, query, key);
  const Terms<float> terms = check_weight_terms(kFunction, shapes, options);
  check_statistics(kFunction, statistics);
  const auto* table = kernels_for(shapes);
  if (table == nullptr) {
    const Floats floats(query, key);
    return reference::statistics_of<float>(floats.problem(terms), statistics.top_k);
  }
  auto result = make_statistics<float>(terms.shape, statistics.top_k);
  const auto schedule = fused::make_weight_schedule(*table, terms, shapes, num_threads());
  fused::statistics_of(job_of(terms, query, key), schedule, result);
  return result;
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
