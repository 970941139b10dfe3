#include "attention/plan.h"

#include <array>

#include "attention/target.h"
#include "heed/parallel.h"

namespace heed::inline v0 {

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

template Plan<float> make_plan(const Request<float>&, Pass);
template Plan<double> make_plan(const Request<double>&, Pass);

}  // namespace heed::inline v0
