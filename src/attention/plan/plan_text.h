// A plan as text.
#pragma once

#include <cstddef>
#include <string>

#include "attention/plan/plan.h"

namespace heed { inline namespace v0 {

// The bytes of memory that the passes need.
struct Workspaces {
  std::size_t forward;
  std::size_t backward;
  std::size_t weights;
};

// The request and its plan in a few lines, with reasons.
template <class Real>
std::string to_text(const Request<Real>& request, const Plan<Real>& plan,
                    const Workspaces& workspaces);

}}  // namespace heed::v0
