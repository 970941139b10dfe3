// Where the tasks of the way back add, and how their sums become gradients.
#pragma once

#include <cstdint>

#include "attention/fused/backward_job.h"
#include "attention/fused/job.h"

namespace heed::inline v0::fused {

class BackwardSums {
 public:
  BackwardSums(const BackwardJob& job, const BackwardDivision& division, std::int32_t lanes,
               Workspace& workspace);

  // Where a task adds; what it has for itself is 0.
  TaskSums start(const BackwardTask& task);

  // Adds what the tasks summed for themselves to the gradients, in the order of tasks.
  void write() const;

 private:
  // Rows of keys or values, in whole vectors. Part 0 adds to the gradient itself where its rows are
  // whole vectors already and lie one behind the other.
  struct Rows {
    float* sums = nullptr;  // [key heads][parts with sums][kv_len][stride]
    TensorView<float> gradient;
    std::int64_t dim = 0;
    std::int64_t stride = 0;
    std::int64_t first_part = 0;  // the first one with sums of its own
  };

  Rows make_rows(const TensorView<float>& gradient, std::int32_t lanes, Workspace& workspace) const;
  float* part_of(const Rows& rows, std::int64_t head, std::int64_t part) const;
  float* gradient_of(const Rows& rows, std::int64_t head) const;
  float* start(const Rows& rows, const BackwardTask& task) const;
  BiasSums bias_of(const BackwardTask& task) const;
  void write(const Rows& rows) const;
  void write_part(const Rows& rows, std::int64_t head, std::int64_t part) const;
  double* start_heads(double* sums, const BackwardTask& task) const;
  void write_heads(const double* sums, float* gradient) const;
  void write_bias(const BackwardTask& task) const;
  template <class Visit>
  void for_each_task(Visit visit) const;

  const BackwardJob& job_;
  const BackwardDivision& division_;
  std::int64_t kv_len_;
  std::int64_t group_;
  Rows key_;
  Rows value_;
  double* alibi_slopes_ = nullptr;  // [task][group]
  double* sinks_ = nullptr;         // the same
  // [task][bias_heads_][bias_queries_][bias_keys_]: 1 in dimensions in which the bias is repeated.
  float* bias_ = nullptr;
  std::int64_t bias_heads_ = 0;
  std::int64_t bias_queries_ = 0;
  std::int64_t bias_keys_ = 0;
};

}  // namespace heed::inline v0::fused
