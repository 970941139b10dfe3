// Products of a few rows of numbers with 4-bit weights in groups of rows.
#if defined(HEED_MODELS_GROUPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_MODELS_GROUPS_INL_H_
#undef HEED_MODELS_GROUPS_INL_H_
#else
#define HEED_MODELS_GROUPS_INL_H_
#endif

#include <algorithm>

#include "models/kernels/sixteen-inl.h"
#include "models/kernels/stored-inl.h"
#include "models/kernels/weight_kernels.h"
#include "simd/register_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace models::HWY_NAMESPACE {

inline constexpr int kGroupVectors = static_cast<int>(kGroupRows) / kLanes;
// For one row of numbers, two vectors of weight rows are computed at a time; for more, one vector
// fills the registers.
inline constexpr int kVectorsOfOneRow = std::min(2, kGroupVectors);

// The product of kRows rows of numbers with kVectors vectors of weight rows of type Stored.
template <class Stored, int kRows, int kVectors>
class GroupProduct {
 public:
  // Writes out[i · kGroupRows + r] for the rows r of a group from first_lane on. `next` is the next
  // group, to prefetch.
  static HWY_INLINE void compute(const std::byte* group, const std::byte* next, int first_lane,
                                 const InputRows& x, float* HWY_RESTRICT out) {
    Vec sums[kRows][kVectors];
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::Zero(kFloats);
    }
    const std::int64_t num_blocks = x.columns / kWeightBlock;
    for (std::int64_t b = 0; b < num_blocks; ++b) {
      const std::int64_t at = b * kBlockBytes;
      // Hardware prefetching falls short for streams as short as a group. Each pass over a group
      // fetches its part of the next one.
      for (std::int64_t line = first_lane / kPass * kLineBytes; line < kBlockBytes;
           line += kPasses * kLineBytes) {
        __builtin_prefetch(next + at + line);
      }
      add_block(group + at, first_lane, x.arranged + b * kWeightBlock, x.columns, x.block_sums + b,
                num_blocks, sums);
    }
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        hn::Store(sums[i][v], kFloats, out + i * kGroupRows + first_lane + v * kLanes);
      }
    }
  }

 private:
  static constexpr std::int64_t kBlockBytes = kGroupRows * Stored::kBlockBytes;
  static constexpr std::int64_t kHeadBytes = kGroupRows * 2;
  // The weight rows of a pass over a group.
  static constexpr int kPass = kVectors * kLanes;
  static constexpr int kPasses = static_cast<int>(kGroupRows) / kPass;
  static constexpr int kPieces = 4;   // of four bytes per row and block
  static constexpr int kNibbles = 8;  // per piece
  // The partial sums of each product: additions do not wait for each other, and results have the
  // same bits with vectors of any size.
  static constexpr int kChains = 4;
  // The partial sums that one pass over the words computes; the masks of nibbles stay in registers,
  // too.
  static constexpr int kAtOnce = sums_at_once(kRows * kVectors, kChains, kMostSums * 2 / 3);

  static HWY_INLINE void add_block(const std::byte* block, int first_lane, const float* x,
                                   std::int64_t x_stride, const float* block_sums,
                                   std::int64_t sums_stride, Vec (&sums)[kRows][kVectors]) {
    Vec products[kRows][kVectors];
    add_chains<0>(block + Stored::kHeadNumbers * kHeadBytes + first_lane * 4, x, x_stride,
                  products);
    HEED_UNROLL for (int v = 0; v < kVectors; ++v) {
      const std::byte* const heads = block + (first_lane + v * kLanes) * 2;
      const Vec scale = StoredFloat16::load(heads);
      const Vec minimum = Stored::kHasMinimum ? StoredFloat16::load(heads + kHeadBytes)
                                              : hn::Mul(scale, hn::Set(kFloats, Stored::kShift));
      HEED_UNROLL for (int i = 0; i < kRows; ++i) {
        const Vec numbers = hn::Set(kFloats, block_sums[i * sums_stride]);
        sums[i][v] = hn::MulAdd(products[i][v], scale, sums[i][v]);
        sums[i][v] = hn::MulAdd(minimum, numbers, sums[i][v]);
      }
    }
  }

  // Adds up the partial sums from chain kFirst on in `products`, one after the other.
  template <int kFirst>
  static HWY_INLINE void add_chains(const std::byte* pieces, const float* x, std::int64_t x_stride,
                                    Vec (&products)[kRows][kVectors]) {
    Vec chains[kRows][kVectors][kAtOnce];
    HEED_UNROLL for (int i = 0; i < kRows; ++i) {
      HEED_UNROLL for (int v = 0; v < kVectors; ++v) {
        HEED_UNROLL for (int c = 0; c < kAtOnce; ++c) chains[i][v][c] = hn::Zero(kFloats);
      }
    }
    for (int piece = 0; piece < kPieces; ++piece) {
      WordVec words[kVectors];
      HEED_UNROLL for (int v = 0; v < kVectors; ++v) {
        words[v] = hn::LoadU(Words(), reinterpret_cast<const std::uint32_t*>(
                                          pieces + (piece * kGroupRows + v * kLanes) * 4));
      }
      add_nibbles<kFirst, 0>(words, x + piece * kNibbles, x_stride, chains);
    }
    HEED_UNROLL for (int i = 0; i < kRows; ++i) {
      HEED_UNROLL for (int v = 0; v < kVectors; ++v) {
        Vec& product = products[i][v];
        product = kFirst == 0 ? chains[i][v][0] : hn::Add(product, chains[i][v][0]);
        HEED_UNROLL for (int c = 1; c < kAtOnce; ++c) product = hn::Add(product, chains[i][v][c]);
      }
    }
    if constexpr (kFirst + kAtOnce < kChains) {
      add_chains<kFirst + kAtOnce>(pieces, x, x_stride, products);
    }
  }

  // Those nibbles k of every word whose chain, k % kChains, is one of kAtOnce from kFirst on; not
  // shifted except for the last, times numbers that were scaled to match.
  template <int kFirst, int k>
  static HWY_INLINE void add_nibbles(const WordVec (&words)[kVectors], const float* x,
                                     std::int64_t x_stride,
                                     Vec (&chains)[kRows][kVectors][kAtOnce]) {
    constexpr int kChain = k % kChains - kFirst;
    if constexpr (kChain >= 0 && kChain < kAtOnce) {
      Vec nibbles[kVectors];
      HEED_UNROLL for (int v = 0; v < kVectors; ++v) {
        const WordVec nibble = k == kNibbles - 1
                                   ? hn::ShiftRight<28>(words[v])
                                   : hn::And(words[v], hn::Set(Words(), 15U << (4 * k)));
        nibbles[v] = hn::ConvertTo(kFloats, hn::BitCast(Integers(), nibble));
      }
      HEED_UNROLL for (int i = 0; i < kRows; ++i) {
        const Vec numbers = hn::Set(kFloats, x[i * x_stride + k]);
        HEED_UNROLL for (int v = 0; v < kVectors; ++v) {
          Vec& sum = chains[i][v][kChain];
          sum = hn::MulAdd(nibbles[v], numbers, sum);
        }
      }
    }
    if constexpr (k + 1 < kNibbles) {
      add_nibbles<kFirst, k + 1>(words, x, x_stride, chains);
    }
  }
};

template <class Stored, int kRows>
void multiply_groups(const WeightRows& w, const InputRows& x, float* out, std::int64_t out_stride) {
  constexpr int kVectors = kRows == 1 ? kVectorsOfOneRow : 1;
  const std::int64_t group_bytes = kGroupRows * w.row_bytes;
  const std::int64_t end = w.first_row + w.num_rows;
  HWY_ALIGN float results[kRows * kGroupRows];
  for (std::int64_t row = w.first_row; row < end;) {
    const std::int64_t group = row / kGroupRows;
    const std::byte* const bytes = w.bytes + group * group_bytes;
    for (int lane = 0; lane < kGroupRows; lane += kVectors * kLanes) {
      GroupProduct<Stored, kRows, kVectors>::compute(bytes, bytes + group_bytes, lane, x, results);
    }
    const std::int64_t last = std::min((group + 1) * kGroupRows, end);
    for (int i = 0; i < kRows; ++i) {
      std::copy(results + i * kGroupRows + row % kGroupRows,
                results + i * kGroupRows + (last - group * kGroupRows),
                out + i * out_stride + (row - w.first_row));
    }
    row = last;
  }
}

}}}  // namespace heed::v0::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_MODELS_GROUPS_INL_H_
