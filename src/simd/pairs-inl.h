// Vectors of pairs of bfloat16: AVX-512 with AVX512_BF16, NEON with FEAT_BF16. A pair has the bits
// of a float.
#if defined(HEED_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_PAIRS_INL_H_
#undef HEED_PAIRS_INL_H_
#else
#define HEED_PAIRS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "simd/reals-inl.h"
#include "simd/shapes.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The half of a pair that has the first of two numbers.
enum class First { kUpper, kLower };

// The bits of kUnseen in bfloat16.
constexpr std::uint16_t kUnseenBits = 0xBF80;
static_assert(kUnseen == -1);

// All of these bits are set in a number that is not finite.
constexpr std::uint16_t kExponentBits = 0x7F80;

#if HWY_TARGET == HWY_AVX3

// False: products are added to the sum one after the other.
constexpr bool kAddsPairsFirst = false;

HWY_INLINE __m512bh pairs_in(Vec x) { return reinterpret_cast<__m512bh>(x.raw); }
HWY_INLINE __m512i words_in(Vec x) { return _mm512_castps_si512(x.raw); }

// sum + both products of each lane, first that of the upper halves, each added as by a fused
// multiply-add. Operands and results below 2⁻¹²⁶ count as 0.
HWY_INLINE Vec add_product(Vec a, Vec b, Vec sum) {
  return Vec{_mm512_dpbf16_ps(sum.raw, pairs_in(a), pairs_in(b))};
}

// add_product() without the halves whose bit in `mask` is 0.
HWY_INLINE Vec add_some_products(__mmask32 mask, Vec a, Vec b, Vec sum) {
  const Vec some_a{_mm512_castsi512_ps(_mm512_maskz_mov_epi16(mask, words_in(a)))};
  const Vec some_b{_mm512_castsi512_ps(_mm512_maskz_mov_epi16(mask, words_in(b)))};
  return add_product(some_a, some_b, sum);
}

// add_product() that leaves out weights that are kUnseen.
HWY_INLINE Vec add_seen_product(Vec value, Vec weight, Vec sum) {
  const __m512i unseen = _mm512_set1_epi16(static_cast<short>(kUnseenBits));
  return add_some_products(_mm512_cmpneq_epi16_mask(words_in(weight), unseen), value, weight, sum);
}

// add_product() that leaves out numbers of a that are 0.
HWY_INLINE Vec add_nonzero_product(Vec a, Vec b, Vec sum) {
  const __m512i magnitudes = _mm512_set1_epi16(0x7fff);
  return add_some_products(_mm512_test_epi16_mask(words_in(a), magnitudes), a, b, sum);
}

// Pairs of the numbers of two vectors, rounded to nearest even.
HWY_INLINE Vec pair_of(Vec upper, Vec lower) {
  // The words of `lower` come before those of `upper`.
  const __m512bh words = _mm512_cvtne2ps_pbh(upper.raw, lower.raw);
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return Vec{
      _mm512_castsi512_ps(_mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(words)))};
}

// Stores the pairs of a vector's neighbours, half as many as numbers, at `at`.
template <First kFirst>
HWY_INLINE void store_neighbours(Vec numbers, Real* at) {
  const __m256i words = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(numbers.raw));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at),
                      kFirst == First::kUpper ? _mm256_rol_epi32(words, 16) : words);
}

// kLanes pairs of the numbers of two rows of bfloat16.
HWY_INLINE Vec pair_of_rows(const void* upper, const void* lower) {
  const __m512i high =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(upper)));
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(lower)));
  return Vec{_mm512_castsi512_ps(_mm512_or_si512(_mm512_slli_epi32(high, 16), low))};
}

// True if all numbers of a row of pairs are finite.
inline bool are_finite_pairs(const Real* row, std::int32_t count) {
  const __m512i exponent = _mm512_set1_epi16(kExponentBits);
  for (std::int32_t i = 0; i < count; i += kLanes) {
    const int left = std::min(count - i, kLanes);
    const auto exist = static_cast<__mmask16>((1U << left) - 1);
    const __m512i words = _mm512_maskz_loadu_epi32(exist, row + i);
    if (_mm512_cmpeq_epi16_mask(_mm512_and_si512(words, exponent), exponent) != 0) return false;
  }
  return true;
}

#else

// True: BFDOT adds the products of a pair to each other, and the result to the sum.
constexpr bool kAddsPairsFirst = true;

HWY_INLINE uint16x8_t words_in(Vec x) { return vreinterpretq_u16_f32(x.raw); }

// Not every compiler has intrinsics for these two instructions with every baseline.
HWY_INLINE float32x4_t bfdot(float32x4_t sum, uint16x8_t a, uint16x8_t b) {
  asm("bfdot %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(a), "w"(b));
  return sum;
}
HWY_INLINE uint16x4_t bfcvtn(float32x4_t numbers) {
  uint16x4_t words;
  asm("bfcvtn %0.4h, %1.4s" : "=w"(words) : "w"(numbers));
  return words;
}

// sum + (the product of the upper halves + that of the lower halves) of each lane. Both additions
// round to odd: the last bit of an inexact result is 1. Operands and results below 2⁻¹²⁶ count as
// 0.
HWY_INLINE Vec add_product(Vec a, Vec b, Vec sum) {
  return Vec{bfdot(sum.raw, words_in(a), words_in(b))};
}

// add_product() without the halves whose bits are all set in `left_out`.
HWY_INLINE Vec add_other_products(uint16x8_t left_out, Vec a, Vec b, Vec sum) {
  return Vec{bfdot(sum.raw, vbicq_u16(words_in(a), left_out), vbicq_u16(words_in(b), left_out))};
}

// add_product() that leaves out weights that are kUnseen.
HWY_INLINE Vec add_seen_product(Vec value, Vec weight, Vec sum) {
  const uint16x8_t is_unseen = vceqq_u16(words_in(weight), vdupq_n_u16(kUnseenBits));
  return add_other_products(is_unseen, value, weight, sum);
}

// add_product() that leaves out numbers of a that are 0.
HWY_INLINE Vec add_nonzero_product(Vec a, Vec b, Vec sum) {
  const uint16x8_t is_zero = vceqzq_u16(vshlq_n_u16(words_in(a), 1));
  return add_other_products(is_zero, a, b, sum);
}

HWY_INLINE Vec side_by_side(uint16x4_t upper, uint16x4_t lower) {
  return Vec{vreinterpretq_f32_u32(vorrq_u32(vshll_n_u16(upper, 16), vmovl_u16(lower)))};
}

// The numbers of a vector in bfloat16, rounded to nearest even.
HWY_INLINE uint16x4_t to_words(Vec numbers) { return bfcvtn(numbers.raw); }

// Pairs of the numbers of two vectors.
HWY_INLINE Vec pair_of(Vec upper, Vec lower) {
  return side_by_side(to_words(upper), to_words(lower));
}

// Stores the pairs of a vector's neighbours, half as many as numbers, at `at`.
template <First kFirst>
HWY_INLINE void store_neighbours(Vec numbers, Real* at) {
  const uint16x4_t words = to_words(numbers);
  vst1_f32(at, vreinterpret_f32_u16(kFirst == First::kUpper ? vrev32_u16(words) : words));
}

// kLanes pairs of the numbers of two rows of bfloat16.
HWY_INLINE Vec pair_of_rows(const void* upper, const void* lower) {
  return side_by_side(vld1_u16(static_cast<const std::uint16_t*>(upper)),
                      vld1_u16(static_cast<const std::uint16_t*>(lower)));
}

// True if all numbers of a row of pairs are finite.
inline bool are_finite_pairs(const Real* row, std::int32_t count) {
  const auto* const words = reinterpret_cast<const std::uint16_t*>(row);
  const uint16x8_t exponent = vdupq_n_u16(kExponentBits);
  const auto are_finite = [&](const std::uint16_t* at) HWY_ATTR {
    return vmaxvq_u16(vceqq_u16(vandq_u16(vld1q_u16(at), exponent), exponent)) == 0;
  };
  std::int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    if (!are_finite(words + 2 * i)) return false;
  }
  std::uint16_t rest[2 * kLanes] = {};
  std::memcpy(rest, words + 2 * i, static_cast<std::size_t>(count - i) * sizeof(Real));
  return are_finite(rest);
}

#endif

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_PAIRS_INL_H_
