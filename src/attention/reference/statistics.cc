#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/reference/arithmetic.h"
#include "attention/reference/passes.h"
#include "attention/reference/row.h"
#include "core/float_environment.h"
#include "heed/attention/reference.h"

namespace heed { inline namespace v0 { namespace reference {

namespace {

// The weight of a key; 0 for keys that are not seen, even in a row that is not finite.
template <class Real>
Real weight_of(const Row<Real>& row, std::int64_t k) {
  const auto i = static_cast<std::size_t>(k);
  return is_seen(row.masked[i]) ? row.weights[i] : 0;
}

// True if the row sees NaN or infinity.
template <class Real>
bool is_broken(const Row<Real>& row) {
  return std::isnan(row.lse) || row.lse == std::numeric_limits<Real>::infinity();
}

// −Σ w ln w
template <class Real>
Real entropy_of(const Row<Real>& row, std::int64_t kv_len) {
  Real sum = 0;
  for (std::int64_t k = 0; k < kv_len; ++k) {
    sum += weight_times_log(weight_of(row, k));
  }
  return 0 - sum;
}

// The keys with the largest weights above 0, at most `count`, in falling order.
template <class Real>
std::vector<std::int64_t> largest_of(const Row<Real>& row, std::int64_t kv_len,
                                     std::int64_t count) {
  std::vector<std::int64_t> keys;
  for (std::int64_t k = 0; k < kv_len; ++k) {
    if (weight_of(row, k) > 0) keys.push_back(k);
  }
  const auto kept = std::min(keys.size(), static_cast<std::size_t>(count));
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(kept), keys.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      const Real weight_a = weight_of(row, a);
                      const Real weight_b = weight_of(row, b);
                      return weight_a != weight_b ? weight_a > weight_b : a < b;
                    });
  keys.resize(kept);
  return keys;
}

// Writes the statistics of one row at its place in the result.
template <class Real>
void describe(const Row<Real>& row, std::int64_t row_index, std::int64_t kv_len,
              BasicAttentionStatistics<Real>& result) {
  constexpr Real kNaN = std::numeric_limits<Real>::quiet_NaN();
  const std::int64_t top_k = result.top_keys.extent(-1);
  std::vector<std::int64_t> keys;
  if (!is_broken(row)) keys = largest_of(row, kv_len, std::max<std::int64_t>(top_k, 1));
  const Real nothing = is_broken(row) ? kNaN : 0;
  const auto key_at = [&](std::size_t i) { return i < keys.size() ? keys[i] : -1; };
  const auto weight_at = [&](std::size_t i) {
    return i < keys.size() ? weight_of(row, keys[i]) : nothing;
  };
  result.lse.data()[row_index] = row.lse;
  result.entropy.data()[row_index] = is_broken(row) ? kNaN : entropy_of(row, kv_len);
  result.max_weight.data()[row_index] = weight_at(0);
  result.max_key.data()[row_index] = key_at(0);
  for (std::int64_t i = 0; i < top_k; ++i) {
    result.top_weights.data()[row_index * top_k + i] = weight_at(static_cast<std::size_t>(i));
    result.top_keys.data()[row_index * top_k + i] = key_at(static_cast<std::size_t>(i));
  }
}

}  // namespace

template <class Real>
Tensor<Real> weights_of_rows(const Problem<Real>& problem, std::span<const AttentionRow> rows) {
  const std::int64_t kv_len = problem.shape.kv_len;
  Tensor<Real> weights({static_cast<std::int64_t>(rows.size()), kv_len});
  Real* out = weights.data();
  Row<Real> row(problem);
  for (const AttentionRow& at : rows) {
    row.compute(at.batch, at.head, at.query);
    for (std::int64_t k = 0; k < kv_len; ++k) *out++ = weight_of(row, k);
  }
  return weights;
}

template <class Real>
BasicAttentionStatistics<Real> statistics_of(const Problem<Real>& problem, std::int64_t top_k) {
  const ScoreShape& shape = problem.scores();
  auto result = make_statistics<Real>(shape, top_k);
  Row<Real> row(problem);
  std::int64_t row_index = 0;
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (std::int64_t head = 0; head < shape.num_heads; ++head) {
      for (std::int64_t q = 0; q < shape.q_len; ++q, ++row_index) {
        row.compute(batch, head, q);
        describe(row, row_index, shape.kv_len, result);
        for (std::int64_t k = 0; k < shape.kv_len; ++k) {
          result.key_mass(batch, head, k) += weight_of(row, k);
        }
      }
    }
  }
  return result;
}

template Tensor<float> weights_of_rows(const Problem<float>&, std::span<const AttentionRow>);
template Tensor<double> weights_of_rows(const Problem<double>&, std::span<const AttentionRow>);
template BasicAttentionStatistics<float> statistics_of(const Problem<float>&, std::int64_t);
template BasicAttentionStatistics<double> statistics_of(const Problem<double>&, std::int64_t);

namespace {

template <class Real>
Tensor<Real> weights(TensorView<const Real> query, TensorView<const Real> key,
                     std::span<const AttentionRow> rows,
                     const BasicAttentionOptions<Real>& options) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "attention_weights";
  const auto problem = check_weights(kFunction, query, key, options);
  check_rows(kFunction, rows, problem.scores());
  return weights_of_rows(problem, rows);
}

template <class Real>
BasicAttentionStatistics<Real> statistics(TensorView<const Real> query, TensorView<const Real> key,
                                          const BasicAttentionOptions<Real>& options,
                                          const StatisticsOptions& statistics) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "attention_statistics";
  const auto problem = check_weights(kFunction, query, key, options);
  check_statistics(kFunction, statistics);
  return statistics_of(problem, statistics.top_k);
}

}  // namespace

Tensor<float> attention_weights(FloatView query, FloatView key, std::span<const AttentionRow> rows,
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
  return reference::statistics(query, key, options, statistics);
}

BasicAttentionStatistics<double> attention_statistics(DoubleView query, DoubleView key,
                                                      const AttentionOptions64& options,
                                                      const StatisticsOptions& statistics) {
  return reference::statistics(query, key, options, statistics);
}

}}}  // namespace heed::v0::reference
