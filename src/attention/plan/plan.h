// Plans: the choice of a backend for a request. It is made here and nowhere else.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "attention/plan/prepared.h"

namespace heed { inline namespace v0 {

template <class Real>
using PreparedPass = std::unique_ptr<const Prepared<Real>>;

// Prepares a checked request: the first backend does that does not refuse it. If `refusals` is not
// null, it gets the reasons of those that did.
template <class Real>
PreparedPass<Real> prepare(const Request<Real>& request, Pass pass,
                           std::string* refusals = nullptr);

// Prepares one or more requests with the same options that are computed together, such as packed
// sequences or the sequences of a cache: for the largest numbers of queries and keys among them,
// and for all their masks.
template <class Real>
PreparedPass<Real> prepare_together(std::span<const Request<Real>* const> requests, Pass pass);

}}  // namespace heed::v0
