// attention_diagnostics() and weight_diagnostics(): check, plan, run.
#include "heed/attention/diagnostics.h"

#include <fmt/format.h>

#include <cmath>

#include "attention/plan/plan.h"
#include "attention/reference/passes.h"
#include "attention/request/call.h"
#include "core/float_environment.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

template <class T>
AttentionDiagnostics diagnose(TensorView<const T> query, TensorView<const T> key,
                              const BasicAttentionOptions<Computed<T>>& options,
                              const DiagnosticsOptions& diagnostics) {
  const FloatEnvironment environment;
  constexpr const char* kCaller = "attention_diagnostics";
  const auto request = check_weight_request(kCaller, check_shapes(kCaller, query, key), options);
  check_lengths(kCaller, diagnostics, request.scores());
  return prepare(request, Pass::kWeights)->diagnose(call_of(request, query, key), diagnostics);
}

// The largest sum of weights that is accepted: that of a softmax in half precision, whose rounding
// errors hardly add up in the sum.
constexpr double kLargestSum = 1.01;

template <class Real>
void check_row(TensorView<const Real> weights, std::int64_t b, std::int64_t h, std::int64_t q) {
  double sum = 0;
  for (std::int64_t k = 0; k < weights.extent(3); ++k) {
    const auto weight = static_cast<double>(weights(b, h, q, k));
    sum += weight;
    if (!(weight < 0)) continue;
    throw InvalidArgument(
        fmt::format("weight_diagnostics: weights({}, {}, {}, {}) is {}, expected at least 0", b, h,
                    q, k, weight));
  }
  if (!(sum > kLargestSum)) return;
  throw InvalidArgument(
      fmt::format("weight_diagnostics: the weights ({}, {}, {}) sum to {:.4g}, expected at most 1",
                  b, h, q, sum));
}

template <class Real>
AttentionDiagnostics diagnose_weights(TensorView<const Real> weights, const Mask& mask,
                                      const DiagnosticsOptions& diagnostics) {
  const FloatEnvironment environment;
  constexpr const char* kCaller = "weight_diagnostics";
  if (weights.rank() != 4) {
    throw InvalidArgument(
        fmt::format("{}: weights has shape {}, expected [batch, num_heads, q_len, kv_len]", kCaller,
                    to_string(weights.shape())));
  }
  const ScoreShape shape{.batch = weights.extent(0),
                         .num_heads = weights.extent(1),
                         .q_len = weights.extent(2),
                         .kv_len = weights.extent(3)};
  check_lengths(kCaller, diagnostics, shape);
  const BoundMask bound(mask, shape);
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    const std::int64_t queries = length_of(diagnostics.q_lengths, b, shape.q_len);
    for (std::int64_t h = 0; h < shape.num_heads; ++h) {
      for (std::int64_t q = 0; q < queries; ++q) check_row(weights, b, h, q);
    }
  }
  const auto weights_of = [&](std::int64_t b, std::int64_t h, std::int64_t q,
                              reference::SeenWeights& row) {
    const std::int64_t keys = length_of(diagnostics.kv_lengths, b, shape.kv_len);
    for (std::int64_t k = 0; k < shape.kv_len; ++k) {
      const auto i = static_cast<std::size_t>(k);
      const detail::ScoreIndex cell{b, h, q, k};
      row.weights[i] = static_cast<double>(weights(b, h, q, k));
      row.seen[i] = (k < keys && bound.visible(cell)) || row.weights[i] != 0;
    }
  };
  return reference::diagnose_rows(shape, diagnostics, weights_of);
}

}  // namespace

AttentionDiagnostics attention_diagnostics(FloatView query, FloatView key,
                                           const AttentionOptions& options,
                                           const DiagnosticsOptions& diagnostics) {
  return diagnose(query, key, options, diagnostics);
}

AttentionDiagnostics attention_diagnostics(Float16View query, Float16View key,
                                           const AttentionOptions& options,
                                           const DiagnosticsOptions& diagnostics) {
  return diagnose(query, key, options, diagnostics);
}

AttentionDiagnostics attention_diagnostics(BFloat16View query, BFloat16View key,
                                           const AttentionOptions& options,
                                           const DiagnosticsOptions& diagnostics) {
  return diagnose(query, key, options, diagnostics);
}

AttentionDiagnostics attention_diagnostics(DoubleView query, DoubleView key,
                                           const AttentionOptions64& options,
                                           const DiagnosticsOptions& diagnostics) {
  return diagnose(query, key, options, diagnostics);
}

AttentionDiagnostics weight_diagnostics(FloatView weights, const Mask& mask,
                                        const DiagnosticsOptions& diagnostics) {
  return diagnose_weights(weights, mask, diagnostics);
}

AttentionDiagnostics weight_diagnostics(DoubleView weights, const Mask& mask,
                                        const DiagnosticsOptions& diagnostics) {
  return diagnose_weights(weights, mask, diagnostics);
}

}}  // namespace heed::v0
