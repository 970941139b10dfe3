// Calls a kernel compiled for a panel's width, which is known at run time.
#if defined(HEED_BY_WIDTH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_BY_WIDTH_INL_H_
#undef HEED_BY_WIDTH_INL_H_
#else
#define HEED_BY_WIDTH_INL_H_
#endif

#include <cstdint>

#include "attention/kernels/types-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

template <template <int> class Call, class... Arguments>
void by_width(std::int32_t vectors, Arguments&&... arguments) {
  switch (vectors) {
    case 1:
      return Call<1>::run(arguments...);
    case 2:
      return Call<2>::run(arguments...);
    default:
      return Call<3>::run(arguments...);
  }
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_BY_WIDTH_INL_H_
