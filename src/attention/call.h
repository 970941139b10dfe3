// A call of attention, decided: what attention(), a plan and packed sequences have in common.
#pragma once

#include <span>

#include "attention/fused/job.h"
#include "attention/problem.h"
#include "heed/plan.h"

namespace heed::inline v0 {

struct Call {
  AttentionShapes shapes;
  Terms<float> terms;
  fused::Schedule schedule;  // without a table: the reference computes

  bool is_fused() const { return schedule.table != nullptr; }
};

// Throws InvalidArgument, with `function` in front, when shapes and options do not fit.
Call decide(const char* function, const AttentionShapes& shapes, const AttentionOptions& options);

// Computes attention of tensors that were checked. T is float, Float16 or BFloat16.
template <class T>
void execute(const Call& call, TensorView<const T> query, TensorView<const T> key,
             TensorView<const T> value, const AttentionBuffers<T>& buffers);

// By plain loops: the result for some batch entries, counted from the first of them.
template <class T>
void execute_by_reference(const Terms<float>& terms, RowRange batches, TensorView<const T> query,
                          TensorView<const T> key, TensorView<const T> value,
                          const AttentionBuffers<T>& buffers);

}  // namespace heed::inline v0
