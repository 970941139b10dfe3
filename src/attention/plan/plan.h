// Who computes a request, and how: the only place where that is decided.
#pragma once

#include <span>
#include <string>

#include "attention/plan/backend.h"

namespace heed { inline namespace v0 {

template <class Real>
struct Plan {
  const Backend<Real>* backend = nullptr;
  engine::Schedule<Real> schedule;
  std::string reason;  // why the backends before this one were passed over; empty: none was
};

// For a request that was checked.
template <class Real>
Plan<Real> make_plan(const Request<Real>& request, Pass pass);

// For requests with the same options that are computed together, at least one: packed sequences,
// and those of a cache. A plan for the most queries and the most keys there are, and for the masks
// of all.
template <class Real>
Plan<Real> plan_together(std::span<const Request<Real>* const> requests, Pass pass);

}}  // namespace heed::v0
