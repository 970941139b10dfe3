// The forward pass over tokens that are divided among ranks.
#pragma once

#include <optional>

#include "attention/request/tensor_rows.h"
#include "distributed/shared_problem.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace distributed {

// The memory for the results of this rank's queries.
template <class Real>
struct Results {
  MutableRows out;
  TensorView<Real> lse;      // empty when not wanted
  TensorView<Real> lse_low;  // empty when not wanted
  // The rounding error of out, in the type of out; absent when not wanted.
  std::optional<MutableRows> out_low = std::nullopt;
};

// All ranks call it; when one fails, all throw the same exception.
template <class Real>
void forward(const SharedProblem<Real>& problem, const Results<Real>& results);

}}}  // namespace heed::v0::distributed
