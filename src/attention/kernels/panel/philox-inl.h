// Dropout by counters for a vector of rows at a time; core/philox.h has it for one number.
#if defined(HEED_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_PHILOX_INL_H_
#undef HEED_PHILOX_INL_H_
#else
#define HEED_PHILOX_INL_H_
#endif

#include <cstdint>

#include "attention/kernels/kernels.h"
#include "attention/kernels/types-inl.h"
#include "core/philox.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// A word in the low half of each 64-bit lane, whose high half is not used: of every row for
// doubles, of every second row for floats.
using Words = hn::Repartition<std::uint32_t, Reals>;
using WideWords = hn::RepartitionToWide<Words>;
using WideVec = hn::Vec<WideWords>;
inline constexpr Words kWords;
inline constexpr WideWords kWideWords;

HWY_INLINE WideVec multiply(WideVec word, std::uint32_t factor) {
  return hn::MulEven(hn::BitCast(kWords, word), hn::Set(kWords, factor));
}
HWY_INLINE WideVec high_word(WideVec product) { return hn::ShiftRight<32>(product); }

// Philox4x32-10 for rows whose counters differ in two words, the query and the head. The first of
// its ten rounds is then free and the second needs two operations.
class PhiloxRows {
 public:
  HWY_INLINE PhiloxRows(const DropoutRows& dropout, WideVec query, WideVec head)
      : dropout_(dropout) {
    const WideVec product1 = multiply(head, kPhiloxFactor1);
    const WideVec word0 = xor3(high_word(product1), query, round_key(0, 0));
    const WideVec product0 = multiply(word0, kPhiloxFactor0);
    word0_ = hn::Xor(product1, round_key(1, 0));
    word2_ = hn::Xor(high_word(product0), round_key(1, 1));
    word3_ = product0;
  }

  // The words that decide on the keys 8 · first_word to 8 · first_word + 7.
  HWY_INLINE void draw(std::uint32_t first_word, WideVec (&words)[4]) const {
    const std::uint64_t product0 = std::uint64_t{kPhiloxFactor0} * first_word;
    const std::uint32_t word2 = static_cast<std::uint32_t>(product0 >> 32) ^ dropout_.batch ^
                                static_cast<std::uint32_t>(dropout_.round_keys[0][1]);
    const std::uint64_t product1 = std::uint64_t{kPhiloxFactor1} * word2;
    words[0] = hn::Xor(word0_, hn::Set(kWideWords, product1 >> 32));
    words[1] = hn::Set(kWideWords, product1);
    words[2] = hn::Xor(word2_, hn::Set(kWideWords, product0));
    words[3] = word3_;
    for (int round = 2; round < kPhiloxRounds; ++round) {
      const WideVec product_a = multiply(words[0], kPhiloxFactor0);
      const WideVec product_b = multiply(words[2], kPhiloxFactor1);
      words[0] = xor3(high_word(product_b), words[1], round_key(round, 0));
      words[1] = product_b;
      words[2] = xor3(high_word(product_a), words[3], round_key(round, 1));
      words[3] = product_a;
    }
  }

 private:
  static HWY_INLINE WideVec xor3(WideVec a, WideVec b, WideVec c) {
    return hn::Xor(a, hn::Xor(b, c));
  }
  HWY_INLINE WideVec round_key(int round, int word) const {
    return hn::Set(kWideWords, dropout_.round_keys[round][word]);
  }

  const DropoutRows& dropout_;
  WideVec word0_;
  WideVec word2_;
  WideVec word3_;
};

// The words of a vector of rows, each in the upper half of its lane for doubles; for floats a lane
// is a word.
class RandomWords {
 public:
#if HEED_REAL_BITS == 32
  HWY_INLINE RandomWords(const DropoutRows& dropout, std::int32_t first_row)
      : RandomWords(dropout, load_words(dropout.q_idx + first_row),
                    load_words(dropout.heads + first_row)) {}

  HWY_INLINE void draw(std::uint32_t first_word, BitVec (&words)[4]) const {
    WideVec even[4];
    WideVec odd[4];
    even_rows_.draw(first_word, even);
    odd_rows_.draw(first_word, odd);
    for (int i = 0; i < 4; ++i) {
      const WideVec shifted = hn::ShiftLeft<32>(odd[i]);
      words[i] = hn::OddEven(hn::BitCast(kWords, shifted), hn::BitCast(kWords, even[i]));
    }
  }

 private:
  HWY_INLINE RandomWords(const DropoutRows& dropout, WideVec query, WideVec head)
      : even_rows_(dropout, query, head), odd_rows_(dropout, high_word(query), high_word(head)) {}

  static HWY_INLINE WideVec load_words(const std::int32_t* rows) {
    return hn::BitCast(kWideWords, hn::LoadU(Indices(), rows));
  }

  PhiloxRows even_rows_;
  PhiloxRows odd_rows_;
#else
  HWY_INLINE RandomWords(const DropoutRows& dropout, std::int32_t first_row)
      : rows_(dropout, load_words(dropout.q_idx + first_row),
              load_words(dropout.heads + first_row)) {}

  HWY_INLINE void draw(std::uint32_t first_word, BitVec (&words)[4]) const {
    rows_.draw(first_word, words);
    for (BitVec& word : words) word = hn::ShiftLeft<32>(word);
  }

 private:
  static HWY_INLINE WideVec load_words(const std::int32_t* rows) {
    const hn::RebindToSigned<WideWords> integers;
    return hn::BitCast(kWideWords, hn::PromoteTo(integers, hn::LoadU(Indices(), rows)));
  }

  PhiloxRows rows_;
#endif
};

// Multiplies weights[key][width] by the factors of dropout, for `count` keys from first_key on,
// which is a multiple of 8. Up to seven more keys of the array are overwritten with meaningless
// numbers. With kGuarded, weights that are kUnseen stay.
template <bool kGuarded>
HWY_NOINLINE void drop_weights(const DropoutRows& dropout, std::int32_t first_key,
                               std::int32_t count, std::int32_t width, Real* weights) {
  const Vec factor = hn::Set(kReals, dropout.kept_factor);
  // The largest word whose upper 16 bits drop a weight.
  const BitVec last_dropped =
      hn::Set(kBits, (hn::TFromD<Bits>{dropout.threshold} << (HEED_REAL_BITS - 16)) - 1);
  const auto multiply_weight = [&](BitVec word, Real* at) HWY_ATTR {
    const auto is_kept = hn::RebindMask(kReals, hn::Gt(word, last_dropped));
    const Vec weight = hn::Load(kReals, at);
    const Vec dropped = hn::IfThenElseZero(is_kept, hn::Mul(weight, factor));
    const auto is_marked = hn::Eq(weight, hn::Set(kReals, kUnseen));
    hn::Store(kGuarded ? hn::IfThenElse(is_marked, weight, dropped) : dropped, kReals, at);
  };
  for (std::int32_t r = 0; r < width; r += kLanes) {
    const RandomWords random(dropout, r);
    for (std::int32_t key = 0; key < count; key += 8) {
      BitVec words[4];
      random.draw(static_cast<std::uint32_t>(first_key + key) / 8, words);
      for (int i = 0; i < 4; ++i) {
        Real* at = weights + static_cast<std::int64_t>(key + 2 * i) * width + r;
        multiply_weight(hn::ShiftLeft<16>(words[i]), at);
        multiply_weight(words[i], at + width);
      }
    }
  }
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_PHILOX_INL_H_
