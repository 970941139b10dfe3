// Vectors of stored weights: a struct for each type locates the weights of a row and converts them
// to floats.
#if defined(HEED_MODELS_STORED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_MODELS_STORED_INL_H_
#undef HEED_MODELS_STORED_INL_H_
#else
#define HEED_MODELS_STORED_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "heed/core/data_type.h"
#include "hwy/highway.h"
#include "models/kernels/weight_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace models::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;
inline constexpr Floats kFloats;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Floats()));
using Words = hn::Rebind<std::uint32_t, Floats>;
using WordVec = hn::Vec<Words>;
using Integers = hn::Rebind<std::int32_t, Floats>;
using Halves = hn::Rebind<std::uint16_t, Floats>;
using Bytes = hn::Rebind<std::uint8_t, Floats>;
using SignedBytes = hn::Rebind<std::int8_t, Floats>;

// The numbers at the beginning of a block, in the first lanes; the other lanes hold the bytes after
// them.
using Heads = hn::CappedTag<float, 4>;
using HeadVec = hn::Vec<Heads>;
inline constexpr Heads kHeads;

HWY_INLINE std::uint16_t load_half(const std::byte* at) {
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

// Reads kCount numbers; every block has at least the eight bytes that are loaded.
template <int kCount>
HWY_INLINE HeadVec load_head(const std::byte* block) {
#if HWY_TARGET <= HWY_AVX2
  const hn::Rebind<std::uint16_t, Heads> halves;
  const hn::Rebind<hwy::float16_t, Heads> half_floats;
  const auto bits = hn::LoadU(halves, reinterpret_cast<const std::uint16_t*>(block));
  return hn::PromoteTo(kHeads, hn::BitCast(half_floats, bits));
#else
  HWY_ALIGN float numbers[4] = {};
  for (int i = 0; i < kCount; ++i) numbers[i] = Float16::from_bits(load_half(block + 2 * i));
  return hn::Load(kHeads, numbers);
#endif
}

// The bytes of a cache line.
inline constexpr std::int64_t kLineBytes = 64;

HWY_INLINE Vec load_floats(const std::byte* at) {
  return hn::LoadU(kFloats, reinterpret_cast<const float*>(at));
}

// Types without blocks: load(at) returns kLanes weights.

struct StoredFloat32 {
  static constexpr bool kHasNibbles = false;
  static constexpr bool kHasBlocks = false;
  static constexpr std::int64_t kBytes = 4;
  static HWY_INLINE Vec load(const std::byte* at) { return load_floats(at); }
};

struct StoredFloat16 {
  static constexpr bool kHasNibbles = false;
  static constexpr bool kHasBlocks = false;
  static constexpr std::int64_t kBytes = 2;
  static HWY_INLINE Vec load(const std::byte* at) {
#if HWY_TARGET <= HWY_AVX2
    const hn::Rebind<hwy::float16_t, Floats> half_floats;
    const auto bits = hn::LoadU(Halves(), reinterpret_cast<const std::uint16_t*>(at));
    return hn::PromoteTo(kFloats, hn::BitCast(half_floats, bits));
#else
    HWY_ALIGN float numbers[hn::MaxLanes(Floats())];
    for (int i = 0; i < kLanes; ++i) numbers[i] = Float16::from_bits(load_half(at + 2 * i));
    return hn::Load(kFloats, numbers);
#endif
  }
};

struct StoredBFloat16 {
  static constexpr bool kHasNibbles = false;
  static constexpr bool kHasBlocks = false;
  static constexpr std::int64_t kBytes = 2;
  static HWY_INLINE Vec load(const std::byte* at) {
    const auto bits = hn::LoadU(Halves(), reinterpret_cast<const std::uint16_t*>(at));
    return hn::BitCast(kFloats, hn::ShiftLeft<16>(hn::PromoteTo(Words(), bits)));
  }
};

// Types with blocks: calls `visit(column, integers)` for the integers q of a block, kLanes at a
// time. A weight is q · scale, plus the minimum if kHasMinimum.

struct StoredQ80 {
  static constexpr bool kHasNibbles = false;
  static constexpr bool kHasBlocks = true;
  static constexpr std::int64_t kBlockBytes = 34;
  static constexpr int kHeadNumbers = 1;
  static constexpr bool kHasMinimum = false;

  // The integers of columns column ≤ c < column + kLanes.
  static HWY_INLINE Vec integers(const std::byte* block, int column) {
    const auto* const numbers = reinterpret_cast<const std::int8_t*>(block + 2);
    const auto bytes = hn::LoadU(SignedBytes(), numbers + column);
    return hn::ConvertTo(kFloats, hn::PromoteTo(Integers(), bytes));
  }
  template <class Visit>
  static HWY_INLINE void visit(const std::byte* block, const Visit& visit) {
    for (int column = 0; column < kWeightBlock; column += kLanes) {
      visit(column, integers(block, column));
    }
  }
};

// q = nibble + kAdded.
template <int kHead, int kAdded>
struct StoredNibbles {
  static constexpr bool kHasNibbles = true;
  static constexpr float kShift = kAdded;
  static constexpr bool kHasBlocks = true;
  static constexpr std::int64_t kBlockBytes = 2 * kHead + kWeightBlock / 2;
  static constexpr int kHeadNumbers = kHead;
  static constexpr bool kHasMinimum = kHead == 2;

  template <class Visit>
  static HWY_INLINE void visit(const std::byte* block, const Visit& visit) {
    constexpr int kHalf = kWeightBlock / 2;
    const auto* const pairs = reinterpret_cast<const std::uint8_t*>(block + 2 * kHead);
    for (int column = 0; column < kHalf; column += kLanes) {
      const WordVec words = hn::PromoteTo(Words(), hn::LoadU(Bytes(), pairs + column));
      visit(column, to_floats(hn::And(words, hn::Set(Words(), 15U))));
      visit(column + kHalf, to_floats(hn::ShiftRight<4>(words)));
    }
  }

 private:
  static HWY_INLINE Vec to_floats(WordVec nibbles) {
    auto integers = hn::BitCast(Integers(), nibbles);
    if constexpr (kAdded != 0) integers = hn::Add(integers, hn::Set(Integers(), kAdded));
    return hn::ConvertTo(kFloats, integers);
  }
};

using StoredQ40 = StoredNibbles<1, -8>;
using StoredQ41 = StoredNibbles<2, 0>;

}}}  // namespace heed::v0::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_MODELS_STORED_INL_H_
