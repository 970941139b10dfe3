// What is multiplied: numbers, or pairs of bfloat16, whose products take no longer than those of
// floats and are twice as many.
//
// A pair lies in the bits of a float: two neighbours of a row, as they are in memory, or two rows'
// numbers side by side. Where there are pairs, an operand has half as many steps, the last one
// filled up with 0; vectors, register blocks and sums are the same.
#if defined(HEED_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_PRODUCT_INL_H_
#undef HEED_PRODUCT_INL_H_
#else
#define HEED_PRODUCT_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "attention/kernels/kernels.h"
#include "attention/kernels/reals-inl.h"
#include "hwy/highway.h"

#undef HEED_HAS_PAIRS
#ifdef HEED_OF_BFLOAT16
#define HEED_HAS_PAIRS 1
#else
#define HEED_HAS_PAIRS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

constexpr bool kInPairs = HEED_HAS_PAIRS != 0;

// Numbers in one element of an operand, and elements that have so many numbers.
constexpr int kPerElement = kInPairs ? 2 : 1;
constexpr std::int32_t elements_of(std::int32_t numbers) {
  return (numbers + kPerElement - 1) / kPerElement;
}

#if HEED_HAS_PAIRS

HWY_INLINE __m512bh pairs_in(Vec x) { return reinterpret_cast<__m512bh>(x.raw); }
HWY_INLINE __m512i words_in(Vec x) { return _mm512_castps_si512(x.raw); }

// An element in all lanes. Rows of bfloat16 may begin at any even address.
HWY_INLINE Vec broadcast(const Real* at) {
  float pair;
  std::memcpy(&pair, static_cast<const void*>(at), sizeof(pair));
  return hn::Set(kReals, pair);
}

// sum + both products of each lane, that of the upper halves first, each added as by a fused
// multiply-add. Numbers below 2⁻¹²⁶ count as 0, before and after.
HWY_INLINE Vec add_product(Vec a, Vec b, Vec sum) {
  return Vec{_mm512_dpbf16_ps(sum.raw, pairs_in(a), pairs_in(b))};
}

// The same without the halves of which `mask` has no bit.
HWY_INLINE Vec add_some_products(__mmask32 mask, Vec a, Vec b, Vec sum) {
  const Vec some_a{_mm512_castsi512_ps(_mm512_maskz_mov_epi16(mask, words_in(a)))};
  const Vec some_b{_mm512_castsi512_ps(_mm512_maskz_mov_epi16(mask, words_in(b)))};
  return add_product(some_a, some_b, sum);
}

// Without weights that are kUnseen.
HWY_INLINE Vec add_seen_product(Vec value, Vec weight, Vec sum) {
  constexpr short kUnseenBits = static_cast<short>(0xBF80);  // of −1
  static_assert(kUnseen == -1);
  const __m512i unseen = _mm512_set1_epi16(kUnseenBits);
  return add_some_products(_mm512_cmpneq_epi16_mask(words_in(weight), unseen), value, weight, sum);
}

// Without those of a that are 0.
HWY_INLINE Vec add_nonzero_product(Vec a, Vec b, Vec sum) {
  const __m512i magnitudes = _mm512_set1_epi16(0x7fff);
  return add_some_products(_mm512_test_epi16_mask(words_in(a), magnitudes), a, b, sum);
}

// Pairs of two vectors' numbers, rounded to nearest even.
HWY_INLINE Vec pair_of(Vec upper, Vec lower) {
  // The words of `lower` come before those of `upper`.
  const __m512bh words = _mm512_cvtne2ps_pbh(upper.raw, lower.raw);
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return Vec{
      _mm512_castsi512_ps(_mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(words)))};
}

// Pairs of a vector's neighbours, half as many, the first one in the upper half, stored at `at`.
HWY_INLINE void store_neighbours(Vec numbers, Real* at) {
  const __m256i words = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(numbers.raw));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), _mm256_rol_epi32(words, 16));
}

// kLanes numbers of two rows of bfloat16 side by side.
HWY_INLINE Vec pair_of_rows(const void* upper, const void* lower) {
  const __m512i high =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(upper)));
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(lower)));
  return Vec{_mm512_castsi512_ps(_mm512_or_si512(_mm512_slli_epi32(high, 16), low))};
}

// Row i of `pairs` becomes the pairs of rows 2i and 2i + 1 of `rows`, of whole vectors; what lacks
// is `missing`. May be done in place.
enum class First { kUpper, kLower };  // the half that row 2i comes to
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

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_PRODUCT_INL_H_
