#include "support/statistics.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "heed/attention/reference.h"
#include "heed/core/parallel.h"
#include "support/exact.h"
#include "support/kernel_tables.h"

namespace heed::testing_support {

namespace {

struct Answers {
  AttentionStatistics statistics;
  Tensor<float> weights;
};

struct ExactAnswers {
  BasicAttentionStatistics<double> statistics;
  Tensor<double> weights;
};

std::string inaccuracy(const char* name, const Tensor<float>& found, const Tensor<float>& plain,
                       const Tensor<double>& exact) {
  const Judgement judge{.always_allowed = 4 * 0x1p-24 * largest_magnitude(exact)};
  return judge(name, found, plain, exact);
}

// Judges relative errors, for small numbers among large ones. Without fused multiply-add logarithms
// are rounded three times.
std::string relative_inaccuracy(const char* name, const Tensor<float>& found,
                                const Tensor<float>& plain, const Tensor<double>& exact) {
  const Judgement judge{.error = Judgement::Error::kRelative, .always_allowed = 8 * 0x1p-24};
  return judge(name, found, plain, exact);
}

std::string inaccuracy(const Answers& found, const Answers& plain, const ExactAnswers& exact) {
  const auto& f = found.statistics;
  const auto& p = plain.statistics;
  const auto& e = exact.statistics;
  return inaccuracy("weights", found.weights, plain.weights, exact.weights) +
         relative_inaccuracy("weights", found.weights, plain.weights, exact.weights) +
         inaccuracy("lse", f.lse, p.lse, e.lse) +
         inaccuracy("entropy", f.entropy, p.entropy, e.entropy) +
         inaccuracy("max_weight", f.max_weight, p.max_weight, e.max_weight) +
         inaccuracy("key_mass", f.key_mass, p.key_mass, e.key_mass) +
         relative_inaccuracy("key_mass", f.key_mass, p.key_mass, e.key_mass);
}

// Returns the keys of a row by falling weights above 0, then −1.
std::vector<std::int64_t> sorted_keys(std::span<const float> weights, std::size_t count) {
  std::vector<std::int64_t> keys(weights.size());
  std::iota(keys.begin(), keys.end(), 0);
  const auto weight = [&](std::int64_t k) { return weights[static_cast<std::size_t>(k)]; };
  std::stable_sort(keys.begin(), keys.end(),
                   [&](std::int64_t a, std::int64_t b) { return weight(a) > weight(b); });
  for (std::int64_t& key : keys) key = weight(key) == 0 ? -1 : key;
  keys.resize(count, -1);
  return keys;
}

void expect_largest(const AttentionStatistics& found, const Tensor<float>& weights,
                    const std::string& where) {
  const std::int64_t kv_len = weights.extent(1);
  const std::int64_t top_k = found.top_keys.extent(-1);
  for (std::int64_t row = 0; row < weights.extent(0); ++row) {
    const auto row_weights = weights.elements().subspan(static_cast<std::size_t>(row * kv_len),
                                                        static_cast<std::size_t>(kv_len));
    const auto keys =
        sorted_keys(row_weights, static_cast<std::size_t>(std::max<std::int64_t>(top_k, 1)));
    const auto weight = [&](std::size_t i) {
      return keys[i] < 0 ? 0.0F : row_weights[static_cast<std::size_t>(keys[i])];
    };
    ASSERT_EQ(found.max_key.data()[row], keys[0]) << where << ", row " << row;
    ASSERT_EQ(found.max_weight.data()[row], weight(0)) << where << ", row " << row;
    for (std::int64_t i = 0; i < top_k; ++i) {
      const auto place = static_cast<std::size_t>(i);
      ASSERT_EQ(found.top_keys.data()[row * top_k + i], keys[place]) << where << ", row " << row;
      ASSERT_EQ(found.top_weights.data()[row * top_k + i], weight(place)) << where << ", " << row;
    }
  }
}

}  // namespace

template <class T>
WeightJob<T>::WeightJob(const kernels::KernelTable& table, TensorView<const T> query,
                        TensorView<const T> key, const AttentionOptions& options)
    : request(check_weight_request("test", check_shapes("test", query, key), options)),
      pass(table, request, Pass::kWeights, num_threads()),
      call(call_of(request, query, key)) {}

template <class T>
AttentionStatistics statistics_of(const kernels::KernelTable& table, TensorView<const T> query,
                                  TensorView<const T> key, const AttentionOptions& options,
                                  std::int64_t top_k) {
  const WeightJob<T> job(table, query, key, options);
  return job.pass.statistics(job.call, top_k);
}

template <class T>
Tensor<float> weights_of(const kernels::KernelTable& table, TensorView<const T> query,
                         TensorView<const T> key, std::span<const AttentionRow> rows,
                         const AttentionOptions& options) {
  const WeightJob<T> job(table, query, key, options);
  return job.pass.weights(job.call, rows);
}

std::vector<AttentionRow> all_rows(const Shape& query) {
  std::vector<AttentionRow> rows;
  for (std::int64_t b = 0; b < query[0]; ++b)
    for (std::int64_t h = 0; h < query[1]; ++h)
      for (std::int64_t q = 0; q < query[2]; ++q) rows.push_back({b, h, q});
  return rows;
}

void expect_accurate_statistics(const Inputs& in, const AttentionOptions& options,
                                const std::string& what, std::int64_t top_k) {
  const ExactOptions exact_options(options);
  const Tensor<double> inputs[] = {exactly(in.query), exactly(in.key)};
  const auto rows = all_rows(in.query.shape());
  const Answers plain{reference::attention_statistics(in.query, in.key, options),
                      reference::attention_weights(in.query, in.key, rows, options)};
  const ExactAnswers exact{
      reference::attention_statistics(inputs[0], inputs[1], *exact_options),
      reference::attention_weights(inputs[0], inputs[1], rows, *exact_options)};
  for (const auto* table : testing_support::kernels_of_numbers()) {
    const std::string where = what + " on " + table->name;
    const Answers found{statistics_of(*table, in, options, top_k),
                        weights_of(*table, in, rows, options)};
    EXPECT_EQ(inaccuracy(found, plain, exact), "") << where;
    expect_largest(found.statistics, found.weights, where);
  }
}

#define HEED_INSTANTIATE(T)                                                                    \
  template struct WeightJob<T>;                                                                \
  template AttentionStatistics statistics_of(const kernels::KernelTable&, TensorView<const T>, \
                                             TensorView<const T>, const AttentionOptions&,     \
                                             std::int64_t);                                    \
  template Tensor<float> weights_of(const kernels::KernelTable&, TensorView<const T>,          \
                                    TensorView<const T>, std::span<const AttentionRow>,        \
                                    const AttentionOptions&)
HEED_INSTANTIATE(float);
HEED_INSTANTIATE(Float16);
HEED_INSTANTIATE(BFloat16);
#undef HEED_INSTANTIATE

}  // namespace heed::testing_support
