// How the backward pass of one problem is divided.
#pragma once

#include <cstdint>

#include "attention/request/call.h"

namespace heed { inline namespace v0 { namespace engine {

// Some queries of all the heads that share a key head.
struct BackwardTask {
  std::int64_t batch;
  std::int64_t kv_head;
  std::int64_t part;
  RowRange queries;
};

// How the work is divided: by shapes and options alone, so that no sum depends on the threads.
//
// A task is a part of the queries of one key head of a batch entry that is computed. There are
// several parts only where there are few key heads; each sums the gradients of its keys for itself,
// and these sums are added in order. The tasks of a group may add to the same element of the
// gradient of cells: they are done one after the other.
class BackwardDivision {
 public:
  template <class Real>
  BackwardDivision(const BackwardCall<Real>& job, std::int32_t panel_rows)
      : BackwardDivision({job.request->num_queries(), job.request->heads_per_kv_head,
                          job.request->num_kv_heads(), job.request->shapes.num_kv_heads},
                         job.batches, panel_rows,
                         job.gradients.cells ? job.gradients.cells->strides() : Strides{}) {}

  std::int64_t num_tasks() const { return num_heads() * parts_; }
  std::int64_t num_groups() const { return groups_of_batch_ * groups_of_heads_ * parts_; }
  std::int64_t parts() const { return parts_; }
  std::int64_t queries_per_part() const { return queries_per_part_; }
  // Key heads in all batch entries that are computed.
  std::int64_t num_heads() const { return batch_ * kv_heads_; }

  // Whether the gradient of cells has an element of its own for every query and key. Then tasks add
  // to it right away; otherwise each has sums of its own, which are no longer than a head.
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

  // `head` counts the key heads of all batch entries that are computed.
  BackwardTask task(std::int64_t head, std::int64_t part) const;
  std::int64_t head(const BackwardTask& task) const {
    return (task.batch - first_batch_) * kv_heads_ + task.kv_head;
  }
  // Tasks of a key head are numbered in the order of their parts.
  std::int64_t index(const BackwardTask& task) const { return head(task) * parts_ + task.part; }

 private:
  struct Rows {
    std::int64_t queries;
    std::int64_t group_size;  // heads that share a key head
    std::int64_t kv_heads;
    std::int64_t all_kv_heads;  // those of other parts too: each part is divided as in the whole
  };

  // The strides are those of the gradient of cells; 0 where there is none.
  BackwardDivision(const Rows& rows, RowRange batches, std::int32_t panel_rows,
                   const Strides& cells);

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
