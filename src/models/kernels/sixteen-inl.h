// Sixteen sums of floats, in as many vectors as it takes. Sums are added in the order of a vector
// of sixteen on every instruction set, so that results have the same bits.
#if defined(HEED_MODELS_SIXTEEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_MODELS_SIXTEEN_INL_H_
#undef HEED_MODELS_SIXTEEN_INL_H_
#else
#define HEED_MODELS_SIXTEEN_INL_H_
#endif

#include "models/kernels/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace models::HWY_NAMESPACE {

inline constexpr int kSixteen = 16;
// The vectors of sixteen floats.
inline constexpr int kParts = kSixteen / kLanes;
static_assert(kParts * kLanes == kSixteen);

// The most vectors of sums that stay in registers beside the operands of a product.
inline constexpr int kMostSums = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HEED_NEON ? 24 : 12;

// The largest 2ⁿ that divides `count` such that `rows` times as many sums are at most `most`.
constexpr int sums_at_once(int rows, int count, int most = kMostSums) {
  int at_once = count;
  while (at_once > 1 && rows * at_once > most) at_once /= 2;
  return at_once;
}

// Adds the upper half of the lanes to the lower half until one lane is left.
template <class D>
HWY_INLINE float sum_of_halves(D, hn::VFromD<D> lanes) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(lanes);
  } else {
    const hn::Half<D> half;
    return sum_of_halves(half, hn::Add(hn::LowerHalf(half, lanes), hn::UpperHalf(half, lanes)));
  }
}

// Sixteen as one vector: upper vectors are added to lower ones.
template <int kCount>
HWY_INLINE Vec one_vector(const Vec (&parts)[kCount]) {
  static_assert(kCount == kParts);
  if constexpr (kCount == 1) {
    return parts[0];
  } else if constexpr (kCount == 2) {
    return hn::Add(parts[0], parts[1]);
  } else {
    static_assert(kCount == 4);
    return hn::Add(hn::Add(parts[0], parts[2]), hn::Add(parts[1], parts[3]));
  }
}

// The sum of sixteen: the upper eight are added to the lower eight, then four to four, and so on.
template <int kCount>
HWY_INLINE float sum_of_sixteen(const Vec (&parts)[kCount]) {
  return sum_of_halves(kFloats, one_vector(parts));
}

// Four vectors, added in halves until each has one sum: those of a and c are in lanes 0 and 2 of
// the first result, those of b and d four lanes further or in the second one.
struct FourSums {
  HWY_ALIGN float lanes[8];
};
template <class D>
HWY_INLINE FourSums sums_of_four(D d, hn::VFromD<D> a, hn::VFromD<D> b, hn::VFromD<D> c,
                                 hn::VFromD<D> e) {
  const hn::Repartition<double, D> pairs;
  const auto of_pairs = [&](auto first, auto second) HWY_ATTR {
    const auto lower = hn::BitCast(pairs, first);
    const auto upper = hn::BitCast(pairs, second);
    const auto two = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, lower, upper)),
                             hn::BitCast(d, hn::InterleaveUpper(pairs, lower, upper)));
    return hn::Add(two, hn::Shuffle2301(two));
  };
  if constexpr (hn::MaxLanes(D()) == 16) {
    const hn::Half<D> half;
    const auto folded = [&](auto v) HWY_ATTR {
      return hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v));
    };
    return sums_of_four(half, folded(a), folded(b), folded(c), folded(e));
  } else if constexpr (hn::MaxLanes(D()) == 8) {
    const auto folded = [&](auto first, auto second) HWY_ATTR {
      return hn::Add(hn::ConcatLowerLower(d, second, first),
                     hn::ConcatUpperUpper(d, second, first));
    };
    FourSums sums;
    hn::Store(of_pairs(folded(a, b), folded(c, e)), d, sums.lanes);
    return sums;
  } else {
    FourSums sums;
    hn::Store(of_pairs(a, c), d, sums.lanes);
    hn::Store(of_pairs(b, e), d, sums.lanes + 4);
    return sums;
  }
}

// out[i · stride] = the sum of row i of sixteen, in the order of sum_of_sixteen().
template <int kRows, int kCount>
HWY_INLINE void store_sums(const Vec (&rows)[kRows][kCount], float* out, std::int64_t stride) {
  if constexpr (kRows == 1) {
    *out = sum_of_sixteen(rows[0]);
  } else {
    static_assert(kRows <= 4);
    constexpr int kThird = kRows > 2 ? 2 : 0;
    constexpr int kFourth = kRows > 3 ? 3 : kRows > 2 ? 2 : 1;
    const FourSums sums = sums_of_four(kFloats, one_vector(rows[0]), one_vector(rows[1]),
                                       one_vector(rows[kThird]), one_vector(rows[kFourth]));
    out[0] = sums.lanes[0];
    out[stride] = sums.lanes[4];
    if constexpr (kRows > 2) out[2 * stride] = sums.lanes[2];
    if constexpr (kRows > 3) out[3 * stride] = sums.lanes[6];
  }
}

}}}  // namespace heed::v0::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_MODELS_SIXTEEN_INL_H_
