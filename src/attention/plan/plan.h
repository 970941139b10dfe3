// Plans: the backend and the schedule of a request. They are decided here and nowhere else.
#pragma once

#include <span>
#include <string>

#include "attention/plan/backend.h"

namespace heed { inline namespace v0 {

template <class Real>
struct Plan {
  const Backend<Real>* backend = nullptr;
  engine::Schedule<Real> schedule;
  std::string reason;  // why earlier backends refuse the request; empty for the first
};

// The plan of a checked request.
template <class Real>
Plan<Real> make_plan(const Request<Real>& request, Pass pass);

// The plan of one or more requests with the same options that are computed together, such as packed
// sequences or the sequences of a cache. It is made for the largest numbers of queries and keys
// among them, and for all their masks.
template <class Real>
Plan<Real> plan_together(std::span<const Request<Real>* const> requests, Pass pass);

}}  // namespace heed::v0
