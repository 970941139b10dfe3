// The forward pass over tokens that are divided among ranks.
#pragma once

#include <optional>

#include "attention/request/tensor_rows.h"
#include "distributed/shared_problem.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace distributed {

// Where the results of this rank's queries go.
template <class Real>
struct Results {
  MutableRows out;
  TensorView<Real> lse;      // empty when not wanted
  TensorView<Real> lse_low;  // the same
  // What out lacks, in its type; nothing when not wanted.
  std::optional<MutableRows> out_low = std::nullopt;
};

// All ranks call it; when one fails all throw what it threw.
template <class Real>
void forward(const SharedProblem<Real>& problem, const Results<Real>& results);

}}}  // namespace heed::v0::distributed
