#include "attention/plan/plan.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "attention/kernels/target.h"
#include "heed/core/parallel.h"

namespace heed { inline namespace v0 {

template <class Real>
Plan<Real> make_plan(const Request<Real>& request, Pass pass) {
  const std::array<const Backend<Real>*, 2> backends{&fused_backend<Real>(kernels_in_use()),
                                                     &reference_backend<Real>()};
  Plan<Real> plan;
  for (const Backend<Real>* backend : backends) {
    std::string refusal = backend->refusal(request);
    if (refusal.empty()) {
      plan.backend = backend;
      plan.schedule = backend->schedule(request, pass, num_threads());
      break;
    }
    plan.reason = std::move(refusal);
  }
  return plan;
}

template <class Real>
Plan<Real> plan_together(std::span<const Request<Real>* const> requests, Pass pass) {
  const auto irregular =
      std::find_if(requests.begin(), requests.end(),
                   [](const Request<Real>* request) { return !request->mask.is_structural(); });
  Request<Real> largest = irregular == requests.end() ? *requests.front() : **irregular;
  for (const Request<Real>* request : requests) {
    largest.shape.kv_len = std::max(largest.shape.kv_len, request->shape.kv_len);
    largest.shape.q_len = std::max(largest.shape.q_len, request->shape.q_len);
  }
  largest.shape.batch = static_cast<std::int64_t>(requests.size());
  largest.shapes.batch = largest.shape.batch;
  largest.shapes.q_len = largest.shape.q_len;
  largest.shapes.kv_len = largest.shape.kv_len;
  return make_plan(largest, pass);
}

template Plan<float> plan_together(std::span<const Request<float>* const>, Pass);
template Plan<float> make_plan(const Request<float>&, Pass);
template Plan<double> make_plan(const Request<double>&, Pass);

}}  // namespace heed::v0
