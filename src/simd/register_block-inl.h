// The products of the kernels: register blocks of sums, and their order.
#if defined(HEED_REGISTER_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_REGISTER_BLOCK_INL_H_
#undef HEED_REGISTER_BLOCK_INL_H_
#else
#define HEED_REGISTER_BLOCK_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "simd/product-inl.h"
#include "simd/reals-inl.h"
#include "simd/shapes.h"

// To be written before a loop over an array of vectors: GCC keeps such arrays in registers only if
// it unrolls the loop early. Clang does so by itself.
#undef HEED_UNROLL
#ifdef __clang__
#define HEED_UNROLL
#else
#define HEED_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The number of rows of a register block: their 3 vectors of sums each, 3 vectors of the other
// operand and a broadcast element just fit the registers.
constexpr int kRegisterRows = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HEED_NEON ? 8 : 4;

// A row of zeros of a register block.
alignas(64) inline constexpr Real kZeros[kMaxPanelWidth] = {};

// A matrix A[row][step] whose elements are broadcast one by one: numbers, or pairs.
struct Operand {
  const Real* data;
  std::int64_t row_stride;
  std::int64_t step_stride;
};

// sums[i][v] += Σ_step A[i][step] · B[step][v] for kCount vectors from kFirst on, each a chain of
// fused multiply-adds in the order of steps. B is [steps][kVectors] vectors.
template <int kFirst, int kCount, bool kGuarded = false, int kRows, int kVectors>
HWY_INLINE void multiply_add(const Operand& a, const Real* HWY_RESTRICT b, std::int32_t steps,
                             Vec (&sums)[kRows][kVectors]) {
  const Real* HWY_RESTRICT rows[kRows];
  rows[0] = a.data;
  HEED_UNROLL for (int i = 1; i < kRows; ++i) rows[i] = rows[i - 1] + a.row_stride;
  // One offset for all rows: separate additions for each would compete with the products.
  std::int64_t offset = 0;
  for (std::int32_t step = 0; step < steps; ++step) {
    Vec b_step[kCount];
    HEED_UNROLL for (int v = 0; v < kCount; ++v) {
      b_step[v] = hn::Load(kReals, b + (kFirst + v) * kLanes);
    }
    HEED_UNROLL for (int i = 0; i < kRows; ++i) {
      const Vec a_step = broadcast(rows[i] + offset);
      HEED_UNROLL for (int v = 0; v < kCount; ++v) {
        Vec& sum = sums[i][kFirst + v];
        sum = kGuarded ? add_seen_product(a_step, b_step[v], sum)
                       : add_product(a_step, b_step[v], sum);
      }
    }
    offset += a.step_stride;
    b += kVectors * kLanes;
  }
}

// Rows of sums in memory: their initial values and their results. With a stride of 0 all rows have
// the same initial values.
struct BlockSums {
  const Real* start;
  std::int64_t start_stride;
  Real* out;
  std::int64_t out_stride;
};

// out[i][v] = start[i][v] + Σ_step A[i][step] · B[step][v] for kRows rows and kCount vectors from
// kFirst on; B is [steps][kVectors] vectors. Not inlined, as the sums need all registers and code
// around it must not keep any.
template <int kRows, int kVectors, int kFirst, int kCount, bool kGuarded = false>
HWY_NOINLINE void multiply_block(const Operand& a, const Real* HWY_RESTRICT b, std::int32_t steps,
                                 const BlockSums& rows) {
  Vec sums[kRows][kVectors];
  HEED_UNROLL for (int i = 0; i < kRows; ++i) {
    HEED_UNROLL for (int v = kFirst; v < kFirst + kCount; ++v) {
      sums[i][v] = hn::Load(kReals, rows.start + i * rows.start_stride + v * kLanes);
    }
  }
  multiply_add<kFirst, kCount, kGuarded>(a, b, steps, sums);
  HEED_UNROLL for (int i = 0; i < kRows; ++i) {
    HEED_UNROLL for (int v = kFirst; v < kFirst + kCount; ++v) {
      hn::Store(sums[i][v], kReals, rows.out + i * rows.out_stride + v * kLanes);
    }
  }
}

// Consecutive keys of a tile, counted from its first, and the vectors of rows that see any of them.
struct Segment {
  std::int32_t begin;
  std::int32_t end;
  std::int32_t first_vector;
  std::int32_t num_vectors;
};

// Calls body.template run<kFirst, kCount>(segment) with the vectors of the segment as constants.
template <int kVectors, class Body>
HWY_INLINE void with_vectors(const Segment& segment, const Body& body) {
  if constexpr (kVectors > 1) {
    if (segment.num_vectors == 1) {
      if (segment.first_vector == 0) return body.template run<0, 1>(segment);
      if (segment.first_vector == 1) return body.template run<1, 1>(segment);
      if constexpr (kVectors > 2) return body.template run<2, 1>(segment);
    }
  }
  if constexpr (kVectors > 2) {
    if (segment.num_vectors == 2) {
      if (segment.first_vector == 0) return body.template run<0, 2>(segment);
      return body.template run<1, 2>(segment);
    }
  }
  return body.template run<0, kVectors>(segment);
}

// Calls block.template run<kRows>(first) for register blocks of kRegisterRows rows, then 4, 2 and
// 1.
template <class Block>
HWY_INLINE void for_each_register_block(std::int32_t begin, std::int32_t end, const Block& block) {
  std::int32_t row = begin;
  for (; row + kRegisterRows <= end; row += kRegisterRows) block.template run<kRegisterRows>(row);
  if constexpr (kRegisterRows > 4) {
    if (row + 4 <= end) {
      block.template run<4>(row);
      row += 4;
    }
  }
  if (row + 2 <= end) {
    block.template run<2>(row);
    row += 2;
  }
  if (row < end) block.template run<1>(row);
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_REGISTER_BLOCK_INL_H_
