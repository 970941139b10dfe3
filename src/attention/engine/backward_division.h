// The division of the backward pass of one problem into tasks.
#pragma once

#include <cstdint>

#include "attention/request/call.h"

namespace heed { inline namespace v0 { namespace engine {

// A range of the queries of all heads that share a key head.
struct BackwardTask {
  std::int64_t batch;
  std::int64_t kv_head;
  std::int64_t part;
  RowRange queries;
};

// The division of the work. It depends on shapes and options alone, so that no sum depends on the
// number of threads.
//
// A task is a part of the queries of one key head of a batch entry. There are several parts only
// where there are few key heads; each has its own sums of the gradients of keys and values, which
// are added in order. The tasks of a group may add to the same cell of a gradient of cells
// (score_term.h) and are computed one after the other.
class BackwardDivision {
 public:
  template <class Real>
  explicit BackwardDivision(const BackwardCall<Real>& job)
      : BackwardDivision({job.request->num_queries(), job.request->heads_per_kv_head,
                          job.request->num_kv_heads(), job.request->shape.num_kv_heads,
                          kernels::kWidestPanelRows<Real>},
                         job.batches,
                         job.gradients.cells ? job.gradients.cells->strides() : Strides{}) {}

  std::int64_t num_tasks() const { return num_heads() * parts_; }
  std::int64_t num_groups() const { return groups_of_batch_ * groups_of_heads_ * parts_; }
  std::int64_t parts() const { return parts_; }
  std::int64_t queries_per_part() const { return queries_per_part_; }
  // The number of key heads in all batch entries of the call.
  std::int64_t num_heads() const { return batch_ * kv_heads_; }

  // True if the gradient of cells has an element for each query and key. Tasks then add to the
  // gradient itself; otherwise each task has sums of its own, no longer than a head.
  bool shares_cells() const { return shares_cells_; }

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

  // `head` is the number of a key head among those of all batch entries of the call.
  BackwardTask task(std::int64_t head, std::int64_t part) const;
  std::int64_t head(const BackwardTask& task) const {
    return (task.batch - first_batch_) * kv_heads_ + task.kv_head;
  }
  // The number of a task. Tasks of a key head are numbered in the order of their parts.
  std::int64_t index(const BackwardTask& task) const { return head(task) * parts_ + task.part; }

 private:
  struct Rows {
    std::int64_t queries;
    std::int64_t group_size;  // the number of heads that share a key head
    std::int64_t kv_heads;
    // Includes those of other ranks, so that a part is divided like the whole problem.
    std::int64_t all_kv_heads;
    // A part has a multiple of these queries: whole panels of every instruction set.
    std::int64_t panel_rows;
  };

  // `cells` are the strides of the gradient of cells, 0 if there is none.
  BackwardDivision(const Rows& rows, RowRange batches, const Strides& cells);

  std::int64_t first_batch_;
  std::int64_t batch_;
  std::int64_t kv_heads_;
  std::int64_t q_len_;
  bool shares_cells_;
  std::int64_t groups_of_batch_;
  std::int64_t groups_of_heads_;
  std::int64_t queries_per_part_;
  std::int64_t parts_;
};

}}}  // namespace heed::v0::engine
