// The way back through one attention problem, and how it is divided.
#pragma once

#include <cstdint>
#include <optional>

#include "attention/fused/job.h"
#include "attention/rows.h"
#include "heed/attention_backward.h"

namespace heed::inline v0::fused {

// Where gradients are written: views that have the batch entries of the problem, as do its tensors.
struct GradientTargets {
  TensorView<float> query;
  TensorView<float> key;    // 0 before
  TensorView<float> value;  // 0 before
  // Repeated like the bias itself, 0 before.
  std::optional<TensorView<float>> bias = std::nullopt;
  float* alibi_slopes = nullptr;  // [num_heads], where there are slopes
  float* sinks = nullptr;         // [num_heads], where there are sinks
};

struct BackwardJob {
  Job forward;  // terms, query, key, value and the batch entries to compute
  Rows grad_out;
  FloatView out;  // of the forward pass, as is lse
  FloatView lse;
  GradientTargets gradients;

  const Terms<float>& terms() const { return *forward.terms; }
  const RowRange& batches() const { return forward.batches; }
};

// Some queries of all the heads that share a key head.
struct BackwardTask {
  std::int64_t batch;
  std::int64_t kv_head;
  std::int64_t part;
  RowRange queries;
};

// Where a task adds the gradient of the bias: of its head h, query q and key k, counted from the
// task's first, at data + h · head_stride + q · query_stride + k · key_stride.
struct BiasSums {
  float* data = nullptr;  // null: there is no bias
  std::int64_t head_stride = 0;
  std::int64_t query_stride = 0;
  std::int64_t key_stride = 0;
};

// What one task adds to. Keys and values are those of its key head, all of them.
struct TaskSums {
  float* key = nullptr;  // [kv_len][key_stride], in whole vectors
  std::int64_t key_stride = 0;
  float* value = nullptr;  // [kv_len][value_stride], in whole vectors
  std::int64_t value_stride = 0;
  // Of each head that shares the key head; null where there are none.
  double* alibi_slopes = nullptr;
  double* sinks = nullptr;
  BiasSums bias = {};
};

// How the work is divided: by shapes and options alone, so that no sum depends on the threads.
//
// A task is a part of the queries of one key head of a batch entry that is computed. There are
// several parts only where there are few key heads; each sums the gradients of its keys for itself,
// and these sums are added in order. The tasks of a group may add to the same element of the bias's
// gradient: they are done one after the other.
class BackwardDivision {
 public:
  BackwardDivision(const BackwardJob& job, std::int32_t panel_rows);

  std::int64_t num_tasks() const { return num_heads() * parts_; }
  std::int64_t num_groups() const { return groups_of_batch_ * groups_of_heads_ * parts_; }
  std::int64_t parts() const { return parts_; }
  std::int64_t queries_per_part() const { return queries_per_part_; }
  // Key heads in all batch entries that are computed.
  std::int64_t num_heads() const { return batch_ * kv_heads_; }

  // Whether the bias has an element of its own for every query and key. Then tasks add to its
  // gradient right away; otherwise each has sums of its own, which are no longer than a head.
  bool shares_bias() const { return shares_bias_; }

  // Calls visit(task) for the tasks of a group, in their order. The first groups have the last
  // queries, which see the most keys under a causal mask.
  template <class Visit>
  void for_each_task(std::int64_t group, Visit visit) const {
    const std::int64_t part = parts_ - 1 - group / (groups_of_batch_ * groups_of_heads_);
    const std::int64_t batch = group / groups_of_heads_ % groups_of_batch_;
    const std::int64_t head = group % groups_of_heads_;
    for (std::int64_t b = batch; b < batch_; b += groups_of_batch_) {
      for (std::int64_t h = head; h < kv_heads_; h += groups_of_heads_) {
        visit(task(b * kv_heads_ + h, part));
      }
    }
  }

  // `head` counts the key heads of all batch entries that are computed.
  BackwardTask task(std::int64_t head, std::int64_t part) const;
  std::int64_t head(const BackwardTask& task) const {
    return (task.batch - first_batch_) * kv_heads_ + task.kv_head;
  }
  // Tasks of a key head are numbered in the order of their parts.
  std::int64_t index(const BackwardTask& task) const { return head(task) * parts_ + task.part; }

 private:
  std::int64_t first_batch_;
  std::int64_t batch_;
  std::int64_t kv_heads_;
  std::int64_t q_len_;
  bool shares_bias_;
  std::int64_t groups_of_batch_;
  std::int64_t groups_of_heads_;
  std::int64_t queries_per_part_;
  std::int64_t parts_;
};

}  // namespace heed::inline v0::fused
