// The ways in which the decode kernels read memory, and the number of rows that they compute at
// once.
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

// The distance between rows of `out` in the state of a decode panel, in whole vectors.
HWY_INLINE std::int32_t out_stride(const Panel& panel) {
  return (panel.value_dim + kLanes - 1) / kLanes * kLanes;
}

constexpr bool kHasManyRegisters = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HEED_NEON;

// The largest number of rows whose sums fit the registers. With AMX tiles each row has two sums.
constexpr int kMostRowsAtOnce = kInTiles ? 4 : kHasManyRegisters ? 8 : 6;

// The largest number of rows whose sums fit the registers together with eight vectors of values.
constexpr int kMostRowsOfEightVectors = 3;

// The ways of reading keys and values. The bits of results are the same for all.
enum class Reading {
  kAhead,        // several groups side by side; the next data is fetched in the meantime
  kInOrder,      // each side of a tile from its first byte to its last
  kRowsInOrder,  // the same for keys in rows, which are fetched a little ahead
  kGuarded,      // like kAhead, but leaves out keys that a row does not see
};

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_READING_INL_H_
