// The numbers that kernels multiply: floats, doubles, or pairs of bfloat16, whose products take no
// longer than those of floats and are twice as many.
//
// A pair has the bits of a float: two neighbours of a row, as they are in memory, or numbers of two
// rows. With pairs, an operand has half as many steps, of which the last may be padded with 0;
// vectors, register blocks and sums are the same.
#if defined(HEED_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_PRODUCT_INL_H_
#undef HEED_PRODUCT_INL_H_
#else
#define HEED_PRODUCT_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "simd/reals-inl.h"
#include "simd/shapes.h"

#undef HEED_HAS_PAIRS
#ifdef HEED_OF_BFLOAT16
#define HEED_HAS_PAIRS 1
#else
#define HEED_HAS_PAIRS 0
#endif
#undef HEED_HAS_TILES
#ifdef HEED_OF_TILES
#define HEED_HAS_TILES 1
#else
#define HEED_HAS_TILES 0
#endif
#if HEED_HAS_PAIRS
#include "simd/pairs-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

constexpr bool kInPairs = HEED_HAS_PAIRS != 0;
constexpr bool kInTiles = HEED_HAS_TILES != 0;

// The number of numbers in an element of an operand, and the number of elements for `numbers`
// numbers.
constexpr int kPerElement = kInPairs ? 2 : 1;
// The number of keys that are not divided, as their products are, or may be, added to each other
// first.
constexpr std::int32_t kKeysTogether = kInTiles ? kTileKeysTogether : kPerElement;
constexpr std::int32_t elements_of(std::int32_t numbers) {
  return (numbers + kPerElement - 1) / kPerElement;
}

#if HEED_HAS_PAIRS

// An element in all lanes. Rows of bfloat16 may begin at any even address.
HWY_INLINE Vec broadcast(const Real* at) {
  float pair;
  std::memcpy(&pair, static_cast<const void*>(at), sizeof(pair));
  return hn::Set(kReals, pair);
}

// Sets row i of `pairs` to the pairs of rows 2i and 2i + 1 of `rows`, in whole vectors; a missing
// row consists of `missing`. May be done in place. `kFirst` is the half for row 2i.
template <First kFirst>
HWY_INLINE void pair_rows(const Real* rows, std::int64_t count, std::int64_t width, Real missing,
                          Real* pairs) {
  for (std::int64_t row = 0; row < count; row += 2) {
    for (std::int64_t i = 0; i < width; i += kLanes) {
      const Vec first = hn::Load(kReals, rows + row * width + i);
      const Vec second = row + 1 < count ? hn::Load(kReals, rows + (row + 1) * width + i)
                                         : hn::Set(kReals, missing);
      const Vec pair = kFirst == First::kUpper ? pair_of(first, second) : pair_of(second, first);
      hn::Store(pair, kReals, pairs + row / 2 * width + i);
    }
  }
}

#else

HWY_INLINE Vec broadcast(const Real* at) { return hn::Set(kReals, *at); }

HWY_INLINE Vec add_product(Vec a, Vec b, Vec sum) { return hn::MulAdd(a, b, sum); }

HWY_INLINE Vec add_seen_product(Vec value, Vec weight, Vec sum) {
  const auto is_unseen = hn::Eq(weight, hn::Set(kReals, kUnseen));
  return hn::IfThenElse(is_unseen, sum, add_product(value, weight, sum));
}

HWY_INLINE Vec add_nonzero_product(Vec a, Vec b, Vec sum) {
  return hn::IfThenElse(hn::Eq(a, hn::Zero(kReals)), sum, add_product(a, b, sum));
}

#endif

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_PRODUCT_INL_H_
