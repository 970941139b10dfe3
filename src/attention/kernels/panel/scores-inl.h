// The kernels for a tile of scores between the two products, other than user's functions.
#if defined(HEED_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_SCORES_INL_H_
#undef HEED_SCORES_INL_H_
#else
#define HEED_SCORES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "attention/kernels/kernels.h"
#include "attention/kernels/panel/by_width-inl.h"
#include "attention/kernels/panel/panel-inl.h"
#include "hwy/highway.h"
#include "simd/tanh-inl.h"
#include "simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The vector of scores of key j and the rows from r on.
HWY_INLINE Real* scores_at(const ScoreTile& tile, std::int32_t j, std::int32_t r) {
  return tile.scores + static_cast<std::int64_t>(j) * tile.width + r;
}

// score = update(score) for every score from the tile's `begin` to its `end`, a vector at a time.
template <class Update>
HWY_INLINE void update_scores(const ScoreTile& tile, const Update& update) {
  Real* const end = scores_at(tile, tile.end, 0);
  for (Real* at = scores_at(tile, tile.begin, 0); at != end; at += kLanes) {
    hn::Store(update(hn::Load(kReals, at)), kReals, at);
  }
}

void cap(const ScoreTile& tile, Real softcap) {
  const Vec factor = hn::Set(kReals, softcap);
  const Vec inverse = hn::Set(kReals, 1 / softcap);
  update_scores(tile,
                [&](Vec score) HWY_ATTR { return hn::Mul(factor, tanh(hn::Mul(score, inverse))); });
}

void add_alibi(const ScoreTile& tile, const Real* slopes) {
  const Indices integers;
  for (std::int32_t r = 0; r < tile.width; r += kLanes) {
    const Vec minus_slope = hn::Neg(hn::Load(kReals, slopes + r));
    const auto q_idx = hn::LoadU(integers, tile.q_idx + r);
    for (std::int32_t j = tile.begin; j < tile.end; ++j) {
      const auto distance = hn::Abs(hn::Sub(q_idx, hn::Set(integers, tile.first_key + j)));
      Real* at = scores_at(tile, j, r);
      const Vec score = hn::Load(kReals, at);
      hn::Store(hn::MulAdd(minus_slope, to_reals(distance), score), kReals, at);
    }
  }
}

HWY_INLINE Vec load_row(const Real* row) { return hn::LoadU(kReals, row); }
#if HEED_REAL_BITS == 64
HWY_INLINE Vec load_row(const float* row) {
  return hn::PromoteTo(kReals, hn::LoadU(hn::Rebind<float, Reals>(), row));
}
#endif
// score = combine(score, element) for every score and its element of `rows`.
template <class T, class Combine>
HWY_INLINE void combine_rows(const ScoreTile& tile, const ScoreRows<T>& rows,
                             const Combine& combine) {
  const auto update = [&](Real* at, Vec elements) HWY_ATTR {
    hn::Store(combine(hn::Load(kReals, at), elements), kReals, at);
  };
  const auto update_from = [&](std::int32_t first, std::int32_t r) HWY_ATTR {
    for (std::int32_t j = first; j < tile.end; ++j) {
      HWY_ALIGN Real elements[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        elements[i] = rows.data[r + i][j * rows.key_stride];
      }
      update(scores_at(tile, j, r), hn::Load(kReals, elements));
    }
  };
  const auto is_first = [&](const T* row) { return row == rows.data[0]; };
  if (std::all_of(rows.data, rows.data + tile.width, is_first)) {
    for (std::int32_t j = tile.begin; j < tile.end; ++j) {
      const Real element = rows.data[0][j * rows.key_stride];
      for (std::int32_t r = 0; r < tile.width; r += kLanes) {
        update(scores_at(tile, j, r), hn::Set(kReals, element));
      }
    }
    return;
  }
  for (std::int32_t r = 0; r < tile.width; r += kLanes) {
    std::int32_t first = tile.begin;
    if (rows.key_stride == 1) {
      for (; first + kLanes <= tile.end; first += kLanes) {
        Vec square[kLanes];
        for (int i = 0; i < kLanes; ++i) square[i] = load_row(rows.data[r + i] + first);
        transpose(square);
        for (int i = 0; i < kLanes; ++i) update(scores_at(tile, first + i, r), square[i]);
      }
    }
    update_from(first, r);
  }
}

void add_rows(const ScoreTile& tile, const ScoreRows<Real>& rows) {
  combine_rows(tile, rows, [](Vec score, Vec added) HWY_ATTR { return hn::Add(score, added); });
}

void add_diagonals(const ScoreTile& tile, const Real* first, std::int32_t key_step) {
  for (std::int32_t j = tile.begin; j < tile.end; ++j) {
    const Real* elements = first - std::int64_t{j} * key_step;
    for (std::int32_t r = 0; r < tile.width; r += kLanes) {
      Real* at = scores_at(tile, j, r);
      hn::Store(hn::Add(hn::Load(kReals, at), hn::LoadU(kReals, elements + r)), kReals, at);
    }
  }
}

void sum_keys(const ScoreTile& tile, const Real* numbers, Real* sums) {
  for (std::int32_t r = 0; r < tile.width; r += kLanes) {
    Vec sum = hn::Load(kReals, sums + r);
    for (std::int32_t j = tile.begin; j < tile.end; ++j) {
      sum = hn::Add(sum, hn::Load(kReals, numbers + static_cast<std::int64_t>(j) * tile.width + r));
    }
    hn::Store(sum, kReals, sums + r);
  }
}

// Computes kRows rows of a product from `first` on, and kVectors vectors of its columns.
template <int kRows, int kVectors>
HWY_INLINE void multiply_block(const Matrix& a, std::int64_t first, const Real* HWY_RESTRICT b,
                               std::int32_t width, Real* HWY_RESTRICT out) {
  Vec sums[kRows][kVectors];
  Real* const target = out + first * width;
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v)
      sums[i][v] = hn::Load(kReals, target + i * width + v * kLanes);
  for (std::int64_t s = 0; s < a.columns; ++s) {
    const Real* column = a.data + first * a.row_stride + s * a.column_stride;
    for (int v = 0; v < kVectors; ++v) {
      const Vec factor = hn::Load(kReals, b + s * width + v * kLanes);
      const auto is_nothing = hn::Eq(factor, hn::Zero(kReals));
      for (int i = 0; i < kRows; ++i) {
        const Vec added = hn::MulAdd(hn::Set(kReals, column[i * a.row_stride]), factor, sums[i][v]);
        sums[i][v] = hn::IfThenElse(is_nothing, sums[i][v], added);
      }
    }
  }
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v)
      hn::Store(sums[i][v], kReals, target + i * width + v * kLanes);
}

template <int kVectors>
struct MultiplyRows {
  static void run(const Matrix& a, const Real* b, std::int32_t width, Real* out) {
    std::int64_t row = 0;
    for (; row + 4 <= a.rows; row += 4) multiply_block<4, kVectors>(a, row, b, width, out);
    for (; row < a.rows; ++row) multiply_block<1, kVectors>(a, row, b, width, out);
  }
};
void multiply_rows(const Matrix& a, const Real* b, std::int32_t width, Real* out) {
  by_width<MultiplyRows>(width / kLanes, a, b, width, out);
}

void add_mask_rows(const ScoreTile& mask, const ScoreRows<float>& rows) {
  const Vec hidden = hn::Set(kReals, kMinusInfinity);
  combine_rows(mask, rows, [&](Vec sum, Vec added) HWY_ATTR {
    const auto hides = hn::Or(hn::Eq(sum, hidden), hn::Eq(added, hidden));
    return hn::IfThenElse(hides, hidden, hn::Add(sum, added));
  });
}

void hide(const ScoreTile& tile, const std::uint64_t* seen) {
  const Vec hidden = hn::Set(kReals, kMinusInfinity);
  for (std::int32_t j = tile.begin; j < tile.end; ++j) {
    for (std::int32_t r = 0; r < tile.width; r += kLanes) {
      const std::uint64_t bits = seen[j] >> r;
      const auto sees = hn::LoadMaskBits(kReals, reinterpret_cast<const std::uint8_t*>(&bits));
      Real* at = scores_at(tile, j, r);
      hn::Store(hn::IfThenElse(sees, hn::Load(kReals, at), hidden), kReals, at);
    }
  }
}

void add_mask(const ScoreTile& tile, const Real* mask) {
  const Vec hidden = hn::Set(kReals, kMinusInfinity);
  for (std::int32_t i = tile.begin * tile.width; i < tile.end * tile.width; i += kLanes) {
    const Vec added = hn::Load(kReals, mask + i);
    const Vec sum = hn::Add(hn::Load(kReals, tile.scores + i), added);
    hn::Store(hn::IfThenElse(hn::Eq(added, hidden), hidden, sum), kReals, tile.scores + i);
  }
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_SCORES_INL_H_
