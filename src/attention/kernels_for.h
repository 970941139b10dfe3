// Who computes weights of query and key, and what of: kernels a job, the reference floats.
#pragma once

#include "attention/floats.h"
#include "attention/fused/job.h"
#include "attention/kernels/kernels.h"
#include "attention/problem.h"
#include "attention/target.h"

namespace heed::inline v0 {

// The kernels that compute a problem of this shape; null: the reference does.
inline const kernels::KernelTable* kernels_for(const AttentionShapes& shapes) {
  return shapes.head_dim <= kernels::kMaxDim ? kernels_in_use() : nullptr;
}

// What the reference reads.
class Floats {
 public:
  template <class T>
  Floats(TensorView<const T> query, TensorView<const T> key)
      : query_(to_floats(query)),
        key_(to_floats(key)),
        query_view_(query_.view().broadcast_to(query.shape())),
        key_view_(key_.view().broadcast_to(key.shape())) {}
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  Problem<float> problem(const Terms<float>& terms) const {
    return {{terms}, query_view_, key_view_, {}};
  }

 private:
  Tensor<float> query_;
  Tensor<float> key_;
  FloatView query_view_;
  FloatView key_view_;
};

template <class T>
fused::Job job_of(const Terms<float>& terms, TensorView<const T> query, TensorView<const T> key) {
  fused::Job job;
  job.terms = &terms;
  job.query = rows_of(query);
  job.key = rows_of(key);
  return job;
}

}  // namespace heed::inline v0
