// Dropout by counters, a vector of rows at a time: what attention/philox.h says of one.
#if defined(HEED_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_PHILOX_INL_H_
#undef HEED_PHILOX_INL_H_
#else
#define HEED_PHILOX_INL_H_
#endif

#include <cstdint>

#include "attention/kernels/exp2-inl.h"
#include "attention/kernels/kernels.h"
#include "attention/philox.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE {

// Every second row, a word in the low half of each 64-bit lane. The high half means nothing.
using HalfRows = hn::RepartitionToWide<Words>;
using HalfVec = hn::Vec<HalfRows>;
inline constexpr HalfRows kHalfRows;

HWY_INLINE HalfVec multiply(HalfVec word, std::uint32_t factor) {
  return hn::MulEven(hn::BitCast(kWords, word), hn::Set(kWords, factor));
}
HWY_INLINE HalfVec high_word(HalfVec product) { return hn::ShiftRight<32>(product); }

// Philox4x32-10 for rows whose counters differ in two words, the query and the head. The first of
// its ten rounds then costs nothing and the second two operations.
class PhiloxRows {
 public:
  HWY_INLINE PhiloxRows(const DropoutRows& dropout, HalfVec query, HalfVec head)
      : dropout_(dropout) {
    const HalfVec product1 = multiply(head, kPhiloxFactor1);
    const HalfVec word0 = xor3(high_word(product1), query, round_key(0, 0));
    const HalfVec product0 = multiply(word0, kPhiloxFactor0);
    word0_ = hn::Xor(product1, round_key(1, 0));
    word2_ = hn::Xor(high_word(product0), round_key(1, 1));
    word3_ = product0;
  }

  // The words that decide about the keys 8 · first_word … 8 · first_word + 7.
  HWY_INLINE void draw(std::uint32_t first_word, HalfVec (&words)[4]) const {
    const std::uint64_t product0 = std::uint64_t{kPhiloxFactor0} * first_word;
    const std::uint32_t word2 = static_cast<std::uint32_t>(product0 >> 32) ^ dropout_.batch ^
                                static_cast<std::uint32_t>(dropout_.round_keys[0][1]);
    const std::uint64_t product1 = std::uint64_t{kPhiloxFactor1} * word2;
    words[0] = hn::Xor(word0_, hn::Set(kHalfRows, product1 >> 32));
    words[1] = hn::Set(kHalfRows, product1);
    words[2] = hn::Xor(word2_, hn::Set(kHalfRows, product0));
    words[3] = word3_;
    for (int round = 2; round < kPhiloxRounds; ++round) {
      const HalfVec product_a = multiply(words[0], kPhiloxFactor0);
      const HalfVec product_b = multiply(words[2], kPhiloxFactor1);
      words[0] = xor3(high_word(product_b), words[1], round_key(round, 0));
      words[1] = product_b;
      words[2] = xor3(high_word(product_a), words[3], round_key(round, 1));
      words[3] = product_a;
    }
  }

 private:
  static HWY_INLINE HalfVec xor3(HalfVec a, HalfVec b, HalfVec c) {
    return hn::Xor(a, hn::Xor(b, c));
  }
  HWY_INLINE HalfVec round_key(int round, int word) const {
    return hn::Set(kHalfRows, dropout_.round_keys[round][word]);
  }

  const DropoutRows& dropout_;
  HalfVec word0_;
  HalfVec word2_;
  HalfVec word3_;
};

HWY_INLINE HalfVec load_rows(const std::int32_t* rows) {
  const hn::RebindToSigned<Floats> integers;
  return hn::BitCast(kHalfRows, hn::LoadU(integers, rows));
}

// The word of every row.
HWY_INLINE WordVec interleave(HalfVec even, HalfVec odd) {
  return hn::OddEven(hn::BitCast(kWords, hn::ShiftLeft<32>(odd)), hn::BitCast(kWords, even));
}

// Multiplies weights[key][width] by what dropout says, for `count` keys from first_key on, which is
// a multiple of 8; up to seven more of the array are changed in a way that means nothing. Where
// kGuarded, the weights that are kUnseen stay.
template <bool kGuarded>
HWY_NOINLINE void drop_weights(const DropoutRows& dropout, std::int32_t first_key,
                               std::int32_t count, std::int32_t width, float* weights) {
  const Vec factor = hn::Set(kFloats, dropout.kept_factor);
  // The largest word whose upper half means "drop".
  const WordVec last_dropped = hn::Set(kWords, (dropout.threshold << 16) - 1);
  const auto multiply_weight = [&](WordVec word, float* at) HWY_ATTR {
    const auto is_kept = hn::RebindMask(kFloats, hn::Gt(word, last_dropped));
    const Vec weight = hn::Load(kFloats, at);
    const Vec dropped = hn::IfThenElseZero(is_kept, hn::Mul(weight, factor));
    const auto is_marked = hn::Eq(weight, hn::Set(kFloats, kUnseen));
    hn::Store(kGuarded ? hn::IfThenElse(is_marked, weight, dropped) : dropped, kFloats, at);
  };
  for (std::int32_t r = 0; r < width; r += kLanes) {
    const HalfVec query = load_rows(dropout.q_idx + r);
    const HalfVec head = load_rows(dropout.heads + r);
    const PhiloxRows even_rows(dropout, query, head);
    const PhiloxRows odd_rows(dropout, high_word(query), high_word(head));
    for (std::int32_t key = 0; key < count; key += 8) {
      HalfVec even[4];
      HalfVec odd[4];
      even_rows.draw(static_cast<std::uint32_t>(first_key + key) / 8, even);
      odd_rows.draw(static_cast<std::uint32_t>(first_key + key) / 8, odd);
      for (int i = 0; i < 4; ++i) {
        const WordVec words = interleave(even[i], odd[i]);
        float* at = weights + static_cast<std::int64_t>(key + 2 * i) * width + r;
        multiply_weight(hn::ShiftLeft<16>(words), at);
        multiply_weight(words, at + width);
      }
    }
  }
}

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_PHILOX_INL_H_
