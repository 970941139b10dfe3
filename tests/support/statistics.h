// Weights and statistics of attention on each instruction set, compared with the reference.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attention/kernels/kernels.h"
#include "attention/plan/fused.h"
#include "attention/request/call.h"
#include "heed/attention/statistics.h"
#include "support/fused.h"

namespace heed::testing_support {

// Query and key, checked and scheduled for one table of kernels.
template <class T>
struct WeightJob {
  Request<float> request;
  FusedPass<float> pass;
  Call<float> call;

  WeightJob(const kernels::KernelTable& table, TensorView<const T> query, TensorView<const T> key,
            const AttentionOptions& options);
  WeightJob(const WeightJob&) = delete;
  WeightJob& operator=(const WeightJob&) = delete;
};

template <class T>
AttentionStatistics statistics_of(const kernels::KernelTable& table, TensorView<const T> query,
                                  TensorView<const T> key, const AttentionOptions& options = {},
                                  std::int64_t top_k = 0);
template <class T>
Tensor<float> weights_of(const kernels::KernelTable& table, TensorView<const T> query,
                         TensorView<const T> key, std::span<const AttentionRow> rows,
                         const AttentionOptions& options = {});

inline AttentionStatistics statistics_of(const kernels::KernelTable& table, const Inputs& in,
                                         const AttentionOptions& options = {},
                                         std::int64_t top_k = 0) {
  return statistics_of<float>(table, in.query, in.key, options, top_k);
}
inline Tensor<float> weights_of(const kernels::KernelTable& table, const Inputs& in,
                                std::span<const AttentionRow> rows,
                                const AttentionOptions& options = {}) {
  return weights_of<float>(table, in.query, in.key, rows, options);
}

// Returns all rows, in the order of the matrix.
std::vector<AttentionRow> all_rows(const Shape& query);

// Expects, on every instruction set, errors of weights and statistics of at most twice those of the
// plain float computation, or 2 ulp of the largest number, the error of the exponential. The
// largest weights must equal those found by sorting, bit by bit.
void expect_accurate_statistics(const Inputs& in, const AttentionOptions& options,
                                const std::string& what, std::int64_t top_k = 3);

}  // namespace heed::testing_support
