// Products of a few rows of numbers with consecutive rows of stored weights.
#if defined(HEED_MODELS_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_MODELS_PRODUCTS_INL_H_
#undef HEED_MODELS_PRODUCTS_INL_H_
#else
#define HEED_MODELS_PRODUCTS_INL_H_
#endif

#include "models/kernels/groups-inl.h"
#include "models/kernels/sixteen-inl.h"
#include "models/kernels/stored-inl.h"
#include "models/kernels/weight_kernels.h"
#include "simd/register_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace models::HWY_NAMESPACE {

// The product with a row of weights without blocks. Sixteen columns are added to one of two times
// sixteen sums, the next sixteen to the other, so that no addition waits for the one before; fewer
// than sixteen at the end of the row are padded with zeros and added to the second ones.
template <class Stored, int kRows>
class FloatProduct {
 public:
  // `w` are the weights of the row, x[i] the numbers of row i.
  static HWY_INLINE void compute(const std::byte* w, std::int64_t columns,
                                 const float* const (&x)[kRows], float* out,
                                 std::int64_t out_stride) {
    const std::int64_t rest = columns % (2 * kSixteen);
    const std::int64_t whole = columns - rest;
    Vec sums[kRows][kSums];
    add_whole<0>(w, x, whole, sums);
    if (rest >= kSixteen) add_sixteen<0>(w + whole * Stored::kBytes, x, whole, sums);
    const std::int64_t count = rest % kSixteen;
    if (count > 0) add_last(w, x, columns - count, count, sums);
    Vec both[kRows][kParts];
    HEED_UNROLL for (int i = 0; i < kRows; ++i) {
      HEED_UNROLL for (int p = 0; p < kParts; ++p) {
        both[i][p] = hn::Add(sums[i][p], sums[i][kParts + p]);
      }
    }
    store_sums(both, out, out_stride);
  }

 private:
  static constexpr int kSums = 2 * kParts;
  // The vectors of sums of each row that one pass over the weights computes; each pass reads the
  // columns of its sums.
  static constexpr int kAtOnce = sums_at_once(kRows, kSums);

  // Sets the vectors of sums from kFirst on to those of the first `columns` columns.
  template <int kFirst>
  static HWY_INLINE void add_whole(const std::byte* w, const float* const (&x)[kRows],
                                   std::int64_t columns, Vec (&sums)[kRows][kSums]) {
    Vec pass[kRows][kAtOnce];
    HEED_UNROLL for (int i = 0; i < kRows; ++i) {
      HEED_UNROLL for (int v = 0; v < kAtOnce; ++v) pass[i][v] = hn::Zero(kFloats);
    }
    for (std::int64_t c = kFirst * kLanes; c < columns; c += kSums * kLanes) {
      HEED_UNROLL for (int v = 0; v < kAtOnce; ++v) {
        const Vec weights = Stored::load(w + (c + v * kLanes) * Stored::kBytes);
        HEED_UNROLL for (int i = 0; i < kRows; ++i) {
          pass[i][v] = hn::MulAdd(weights, hn::LoadU(kFloats, x[i] + c + v * kLanes), pass[i][v]);
        }
      }
    }
    HEED_UNROLL for (int i = 0; i < kRows; ++i) {
      HEED_UNROLL for (int v = 0; v < kAtOnce; ++v) sums[i][kFirst + v] = pass[i][v];
    }
    if constexpr (kFirst + kAtOnce < kSums) add_whole<kFirst + kAtOnce>(w, x, columns, sums);
  }

  // Adds sixteen columns from `column` on to the sums from vector kFirst on; w begins with the
  // first of them.
  template <int kFirst>
  static HWY_INLINE void add_sixteen(const std::byte* w, const float* const (&x)[kRows],
                                     std::int64_t column, Vec (&sums)[kRows][kSums]) {
    HEED_UNROLL for (int p = 0; p < kParts; ++p) {
      const Vec weights = Stored::load(w + p * kLanes * Stored::kBytes);
      HEED_UNROLL for (int i = 0; i < kRows; ++i) {
        Vec& sum = sums[i][kFirst + p];
        sum = hn::MulAdd(weights, hn::LoadU(kFloats, x[i] + column + p * kLanes), sum);
      }
    }
  }

  // Adds the last columns, fewer than sixteen.
  static HWY_INLINE void add_last(const std::byte* w, const float* const (&x)[kRows],
                                  std::int64_t column, std::int64_t count,
                                  Vec (&sums)[kRows][kSums]) {
    HWY_ALIGN std::byte weights[kSixteen * Stored::kBytes] = {};
    std::memcpy(weights, w + column * Stored::kBytes,
                static_cast<std::size_t>(count * Stored::kBytes));
    HWY_ALIGN float numbers[kRows][kSixteen] = {};
    const float* rows[kRows];
    for (int i = 0; i < kRows; ++i) {
      std::memcpy(numbers[i], x[i] + column, static_cast<std::size_t>(count) * sizeof(float));
      rows[i] = numbers[i];
    }
    add_sixteen<kParts>(weights, rows, 0, sums);
  }
};

// The product with kWeights adjacent rows of weights in blocks: Σ over the blocks of scale · Σ q x.
// Each of sixteen sums has two columns of a block.
template <class Stored, int kWeights, int kRows>
class BlockProduct {
 public:
  static HWY_INLINE void compute(const WeightRows& w, std::int64_t row, const InputRows& x,
                                 float* out, std::int64_t out_stride) {
    Vec sums[kWeights][kRows][kParts];
    HEED_UNROLL for (int k = 0; k < kWeights; ++k) {
      HEED_UNROLL for (int i = 0; i < kRows; ++i) {
        HEED_UNROLL for (int p = 0; p < kParts; ++p) sums[k][i][p] = hn::Zero(kFloats);
      }
    }
    const std::byte* block = w.row(row);
    const float* numbers = x.data;
    for (std::int64_t b = 0; b < w.columns / kWeightBlock; ++b) {
      HEED_UNROLL for (int k = 0; k < kWeights; ++k) {
        const std::byte* const at = block + k * w.row_bytes;
        // Prefetches the next rows: hardware prefetching falls short for streams as short as a row.
        __builtin_prefetch(at + kWeights * w.row_bytes);
        add_block(at, numbers, x.stride, sums[k]);
      }
      block += Stored::kBlockBytes;
      numbers += kWeightBlock;
    }
    HEED_UNROLL for (int k = 0; k < kWeights; ++k) store_sums(sums[k], out + k, out_stride);
  }

 private:
  static_assert(kWeightBlock == 2 * kSixteen);

  static HWY_INLINE void add_block(const std::byte* block, const float* x, std::int64_t stride,
                                   Vec (&sums)[kRows][kParts]) {
    const Vec scale = hn::Set(kFloats, hn::GetLane(load_head<1>(block)));
    HEED_UNROLL for (int p = 0; p < kParts; ++p) {
      const int column = p * kLanes;
      const Vec first = Stored::integers(block, column);
      const Vec second = Stored::integers(block, kSixteen + column);
      HEED_UNROLL for (int i = 0; i < kRows; ++i) {
        const float* const numbers = x + i * stride + column;
        const Vec product = hn::MulAdd(second, hn::LoadU(kFloats, numbers + kSixteen),
                                       hn::Mul(first, hn::LoadU(kFloats, numbers)));
        sums[i][p] = hn::MulAdd(product, scale, sums[i][p]);
      }
    }
  }
};

// Computes two rows of weights at a time for one row of numbers: with independent sums, a row of
// 576 takes 0.93 of the time.
template <class Stored, int kRows>
void multiply_blocks(const WeightRows& w, const InputRows& x, float* out, std::int64_t out_stride) {
  constexpr int kWeights = kRows == 1 ? 2 : 1;
  std::int64_t r = 0;
  for (; r + kWeights <= w.num_rows; r += kWeights) {
    BlockProduct<Stored, kWeights, kRows>::compute(w, r, x, out + r, out_stride);
  }
  if (r < w.num_rows) BlockProduct<Stored, 1, kRows>::compute(w, r, x, out + r, out_stride);
}

template <class Stored, int kRows>
void multiply_rows(const WeightRows& w, const InputRows& x, float* out, std::int64_t out_stride) {
  if constexpr (Stored::kHasNibbles) {
    multiply_groups<Stored, kRows>(w, x, out, out_stride);
  } else if constexpr (Stored::kHasBlocks) {
    multiply_blocks<Stored, kRows>(w, x, out, out_stride);
  } else {
    const float* numbers[kRows];
    for (int i = 0; i < kRows; ++i) numbers[i] = x.data + i * x.stride;
    const std::byte* row = w.row(0);
    for (std::int64_t r = 0; r < w.num_rows; ++r) {
      FloatProduct<Stored, kRows>::compute(row, w.columns, numbers, out + r, out_stride);
      row += w.row_bytes;
    }
  }
}

template <class Stored>
void multiply_type(const WeightRows& w, const InputRows& x, float* out, std::int64_t out_stride) {
  static_assert(kMostInputRows == 4);
  switch (x.num_rows) {
    case 1:
      return multiply_rows<Stored, 1>(w, x, out, out_stride);
    case 2:
      return multiply_rows<Stored, 2>(w, x, out, out_stride);
    case 3:
      return multiply_rows<Stored, 3>(w, x, out, out_stride);
    case 4:
      return multiply_rows<Stored, 4>(w, x, out, out_stride);
    default:
      return;
  }
}

inline void multiply_few_rows(const WeightRows& w, const InputRows& x, float* out,
                              std::int64_t out_stride) {
  switch (w.type) {
    case WeightType::kFloat32:
      return multiply_type<StoredFloat32>(w, x, out, out_stride);
    case WeightType::kFloat16:
      return multiply_type<StoredFloat16>(w, x, out, out_stride);
    case WeightType::kBFloat16:
      return multiply_type<StoredBFloat16>(w, x, out, out_stride);
    case WeightType::kQ8_0:
      return multiply_type<StoredQ80>(w, x, out, out_stride);
    case WeightType::kQ4_0:
      return multiply_type<StoredQ40>(w, x, out, out_stride);
    case WeightType::kQ4_1:
      return multiply_type<StoredQ41>(w, x, out, out_stride);
    default:  // converted to floats before
      return;
  }
}

}}}  // namespace heed::v0::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_MODELS_PRODUCTS_INL_H_
