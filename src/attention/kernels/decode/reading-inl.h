// How the kernels of few rows read memory, and how much they take at once.
#if defined(HEED_READING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_READING_INL_H_
#undef HEED_READING_INL_H_
#else
#define HEED_READING_INL_H_
#endif

#include <cstdint>

#include "attention/kernels/kernels.h"
#include "attention/kernels/types-inl.h"
#include "hwy/highway.h"
#include "simd/product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// From one row of out to the next, of a panel of few rows: whole vectors.
HWY_INLINE std::int32_t out_stride(const Panel& panel) {
  return (panel.value_dim + kLanes - 1) / kLanes * kLanes;
}

constexpr bool kHasManyRegisters = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HEED_NEON;

// Rows whose sums fit the registers, each of them two where they are those of tiles.
constexpr int kMostRowsAtOnce = kInTiles ? 4 : kHasManyRegisters ? 8 : 6;

// Rows beside whose sums eight vectors of values do.
constexpr int kMostRowsOfEightVectors = 3;

// How keys and values are read. Whatever the way, the bits are the same.
enum class Reading {
  kAhead,        // several groups side by side; what comes next is fetched meanwhile
  kInOrder,      // each side of a tile from its first byte to its last
  kRowsInOrder,  // the same of keys that are rows, which are fetched a little ahead
  kGuarded,      // as kAhead, but keys that a row does not see are left out
};

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_READING_INL_H_
