// The dot product of the plain loops, summed from the first element to the last.
#pragma once

#include <cstdint>

namespace heed { inline namespace v0 {

// Σ a[i] · b[i]
template <class Real>
Real dot(const Real* a, const Real* b, std::int64_t length) {
  Real sum = 0;
  for (std::int64_t i = 0; i < length; ++i) sum += a[i] * b[i];
  return sum;
}

}}  // namespace heed::v0
