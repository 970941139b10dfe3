// The vectors of the kernels: floats, or doubles in files that define HEED_REAL_BITS as 64. Floats
// have products of pairs of bfloat16 in files that define HEED_OF_BFLOAT16, with HEED_OF_TILES in
// AMX tiles, and products of quads of bytes in those that define HEED_OF_QUADS. Each kind of
// kernels has a namespace of its own, as a program has all of them.
#if defined(HEED_REALS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_REALS_INL_H_
#undef HEED_REALS_INL_H_
#else
#define HEED_REALS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "simd/constants.h"

#ifndef HEED_REAL_BITS
#define HEED_REAL_BITS 32
#endif
#undef HEED_REAL_NAMESPACE
#ifdef HEED_OF_TILES
#define HEED_REAL_NAMESPACE tiles
#elif defined(HEED_OF_BFLOAT16)
#define HEED_REAL_NAMESPACE bf16
#elif defined(HEED_OF_QUADS)
#define HEED_REAL_NAMESPACE quads
#elif HEED_REAL_BITS == 32
#define HEED_REAL_NAMESPACE f32
#else
#define HEED_REAL_NAMESPACE f64
#endif

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HEED_REAL_BITS == 32
using Real = float;
#else
using Real = double;
#endif

using Reals = hn::ScalableTag<Real>;
using Vec = hn::Vec<Reals>;
inline constexpr Reals kReals;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Reals()));

// The bits of each number.
using Bits = hn::RebindToUnsigned<Reals>;
using BitVec = hn::Vec<Bits>;
inline constexpr Bits kBits;

// Integers, as many as a vector has numbers: positions, keys or heads.
using Indices = hn::Rebind<std::int32_t, Reals>;
using IndexVec = hn::Vec<Indices>;

HWY_INLINE Vec to_reals(IndexVec indices) {
#if HEED_REAL_BITS == 32
  return hn::ConvertTo(kReals, indices);
#else
  return hn::PromoteTo(kReals, indices);
#endif
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_REALS_INL_H_
