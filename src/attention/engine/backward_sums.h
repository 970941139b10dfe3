// The sums of the tasks of the backward pass, and the gradients computed from them.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/engine/backward_division.h"
#include "attention/kernels/kernels.h"
#include "core/arena.h"

namespace heed { inline namespace v0 { namespace engine {

// The sums of one task. Those of keys and values have all keys of its key head.
template <class Real>
struct TaskSums {
  std::int64_t first_key = 0;
  Real* key = nullptr;  // [num_keys][key_stride] from first_key on, rows padded to whole vectors
  std::int64_t key_stride = 0;
  Real* value = nullptr;  // [num_keys][value_stride], like `key`
  std::int64_t value_stride = 0;
  double* sinks = nullptr;  // one for each head that shares the key head; null if not summed
  std::vector<TermSums<Real>> terms;  // one for each term, in order
};

template <class Real>
class BackwardSums {
 public:
  // Adds the memory of the sums to the layout.
  BackwardSums(const BackwardCall<Real>& job, const kernels::BasicKernelTable<Real>& table,
               Layout& layout);

  // Sets the memory, which has that layout. To be called before all that follows.
  void take(std::byte* memory) { memory_ = memory; }

  const BackwardDivision& division() const { return division_; }

  // Returns the sums of a task, set to 0 where they are the task's own.
  TaskSums<Real> start(const BackwardTask& task) const;

  // Adds the tasks' own sums to the gradients, in the order of tasks.
  void write() const;

 private:
  // The rows of keys or values, padded to whole vectors. Part 0 adds to the gradient itself if its
  // rows are contiguous numbers of Real in whole vectors.
  struct KeyRows {
    Piece<Real> sums;  // [key heads][parts with sums][num_keys][stride]
    MutableRows gradient;
    std::int64_t dim = 0;
    std::int64_t stride = 0;
    std::int64_t first_part = 0;  // the first part with sums of its own
  };

  KeyRows make_rows(const MutableRows& gradient, std::int64_t dim, Layout& layout) const;
  void add_cells(Layout& layout);
  std::int64_t most_places() const;
  Real* part_of(const KeyRows& rows, std::int64_t head, std::int64_t part) const;
  std::byte* gradient_of(const KeyRows& rows, std::int64_t head) const;
  Real* start(const KeyRows& rows, const BackwardTask& task) const;
  double* start_heads(const Piece<double>& sums, std::int64_t per_head,
                      const BackwardTask& task) const;
  // The place in the whole problem of a task's first head.
  std::int64_t first_head(const BackwardTask& task) const {
    return job_.request->head(task.kv_head * group_);
  }
  // The places in the whole problem from a task's first query to its last.
  RowRange places_of(const BackwardTask& task) const;
  CellSums<Real> cells_of(const BackwardTask& task) const;
  void write(const KeyRows& rows) const;
  void write_head(const KeyRows& rows, std::int64_t head) const;
  // Adds heads that share a gradient in the order of heads.
  void write_heads(const Piece<double>& all, std::int64_t per_head, Real* gradient,
                   bool is_shared = false) const;
  void write_cells(const BackwardTask& task) const;
  template <class Visit>
  void for_each_task(Visit visit) const;

  const BackwardCall<Real>& job_;
  const kernels::BasicKernelTable<Real>& table_;
  BackwardDivision division_;
  std::byte* memory_ = nullptr;
  std::int64_t num_keys_;
  std::int64_t group_;
  KeyRows key_;
  KeyRows value_;
  Piece<double> sinks_;               // [task][group]
  std::vector<Piece<double>> terms_;  // for each term: [task][group][sums_per_head()]
  // [task][heads][places of queries][keys]; 1 in dimensions in which the gradient of cells is
  // broadcast.
  Piece<Real> cells_;
  std::int64_t cell_heads_ = 0;
  std::int64_t cell_queries_ = 0;
  std::int64_t cell_keys_ = 0;
};

}}}  // namespace heed::v0::engine
