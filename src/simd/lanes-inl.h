// The sum over the lanes of a vector. Highway adds in an order that differs between its versions;
// here it is fixed, so that bits do not depend on the version.
#if defined(HEED_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_LANES_INL_H_
#undef HEED_LANES_INL_H_
#else
#define HEED_LANES_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE {

// Adds the upper half of the lanes to the lower half until one lane is left; on ARM neighbours
// first, for float, as its instruction does.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::TFromD<D> sum_of_lanes(D, hwy::HWY_NAMESPACE::VFromD<D> lanes) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (HWY_ARCH_ARM_A64 && sizeof(hn::TFromD<D>) == 4 && hn::MaxLanes(D()) == 4) {
    const auto pairs = hn::Add(lanes, hn::Shuffle2301(lanes));
    return hn::GetLane(hn::Add(pairs, hn::Shuffle1032(pairs)));
  } else if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(lanes);
  } else {
    const hn::Half<D> half;
    return sum_of_lanes(half, hn::Add(hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
  }
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_LANES_INL_H_
