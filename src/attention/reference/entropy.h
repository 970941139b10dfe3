// The entropy of weights, term by term.
#pragma once

#include <cmath>

namespace heed { inline namespace v0 { namespace reference {

// w ln w, which is 0 for w = 0 and NaN for NaN. The entropy is −Σ w ln w.
template <class Real>
Real weight_times_log(Real weight) {
  return weight == 0 ? Real{0} : weight * std::log(weight);
}

}}}  // namespace heed::v0::reference
