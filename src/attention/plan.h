// Who computes a request, and how: the only place where that is decided.
#pragma once

#include <string>

#include "attention/backend.h"

namespace heed::inline v0 {

template <class Real>
struct Plan {
  const Backend<Real>* backend = nullptr;
  engine::Schedule<Real> schedule;
  std::string reason;  // why the backends before this one were passed over; empty: none was
};

// For a request that was checked. Packed sequences are planned by the largest of them.
template <class Real>
Plan<Real> make_plan(const Request<Real>& request, Pass pass);

}  // namespace heed::inline v0
