// Where the tasks of the backward pass add, and how their sums become gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/engine/backward_division.h"
#include "attention/kernels/kernels.h"
#include "core/arena.h"

namespace heed { inline namespace v0 { namespace engine {

// What one task adds to. Keys and values are those of its key head, all of them.
template <class Real>
struct TaskSums {
  std::int64_t first_key = 0;
  Real* key = nullptr;  // [num_keys][key_stride], from first_key on, in whole vectors
  std::int64_t key_stride = 0;
  Real* value = nullptr;  // [num_keys][value_stride], the same
  std::int64_t value_stride = 0;
  double* sinks = nullptr;  // of each head that shares the key head, where they are summed
  std::vector<TermSums<Real>> terms;  // of each term, in order
};

template <class Real>
class BackwardSums {
 public:
  // Adds what the sums need to the layout.
  BackwardSums(const BackwardCall<Real>& job, const kernels::BasicKernelTable<Real>& table,
               std::int32_t panel_rows, Layout& layout);

  // Finds the sums in memory of that layout. Before what follows.
  void take(std::byte* memory) { memory_ = memory; }

  const BackwardDivision& division() const { return division_; }

  // Where a task adds; what it has for itself is 0.
  TaskSums<Real> start(const BackwardTask& task) const;

  // Adds what the tasks summed for themselves to the gradients, in the order of tasks.
  void write() const;

 private:
  // Rows of keys or values, in whole vectors. Part 0 adds to the gradient itself where its rows are
  // numbers of Real in whole vectors already and lie one behind the other.
  struct KeyRows {
    Piece<Real> sums;  // [key heads][parts with sums][num_keys][stride]
    MutableRows gradient;
    std::int64_t dim = 0;
    std::int64_t stride = 0;
    std::int64_t first_part = 0;  // the first one with sums of its own
  };

  KeyRows make_rows(const MutableRows& gradient, std::int64_t dim, Layout& layout) const;
  void add_cells(Layout& layout);
  std::int64_t most_places() const;
  Real* part_of(const KeyRows& rows, std::int64_t head, std::int64_t part) const;
  std::byte* gradient_of(const KeyRows& rows, std::int64_t head) const;
  Real* start(const KeyRows& rows, const BackwardTask& task) const;
  double* start_heads(const Piece<double>& sums, std::int64_t per_head,
                      const BackwardTask& task) const;
  // The place of a task's first head among all.
  std::int64_t first_head(const BackwardTask& task) const {
    return job_.request->head(task.kv_head * group_);
  }
  // From the place of a task's first query, among all, to that of its last.
  RowRange places_of(const BackwardTask& task) const;
  CellSums<Real> cells_of(const BackwardTask& task) const;
  void write(const KeyRows& rows) const;
  void write_head(const KeyRows& rows, std::int64_t head) const;
  // Heads that share a gradient are added in their order.
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
  std::vector<Piece<double>> terms_;  // of each: [task][group][sums_per_head()]
  // [task][heads][places of queries][keys]: 1 in dimensions in which the gradient of cells is
  // repeated.
  Piece<Real> cells_;
  std::int64_t cell_heads_ = 0;
  std::int64_t cell_queries_ = 0;
  std::int64_t cell_keys_ = 0;
};

}}}  // namespace heed::v0::engine
