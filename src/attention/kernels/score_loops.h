// The loops over tiles of scores that score terms and masks use, as tables for an instruction set:
// terms and masks know tiles and these loops, and nothing else of the kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "heed/attention/score_mod.h"
#include "heed/core/config.h"
#include "simd/shapes.h"

namespace heed { inline namespace v0 { namespace kernels {

// The number of keys of a tile. Tiles begin at multiples of it in the sequence, which is part of
// the order of summation.
inline constexpr std::int32_t kTileKeys = 128;

// The number of keys after which the state of a row is merged into its total and started anew, so
// that the work on long sequences can be divided. It is part of the order of summation.
inline constexpr std::int64_t kChunkKeys = 1024;

// The scores between the two products, [keys][width].
using detail::BasicScoreTile;
using detail::ScoreTile;

// The elements of a tensor that broadcasts to the scores, for a tile of scores: that of row r and
// key j of the tile is at data[r] + j · key_stride.
template <class T>
struct ScoreRows {
  const T* const* data = nullptr;  // [width]
  std::int64_t key_stride = 0;
};

// Sums for the scores of a tile: that of row r and key j is at data[r] + j · key_stride. Rows may
// share their sums.
template <class Real>
struct BasicSumRows {
  Real* const* data = nullptr;  // [num_rows]
  std::int64_t key_stride = 0;
};

// The value of a bool of the caller, read as a byte: reading a bool whose byte is neither 0 nor 1
// is undefined.
inline bool is_set(const bool& element) {
  return *reinterpret_cast<const unsigned char*>(&element) != 0;
}

// The part of a tile that the irregular parts of a mask show.
enum class Visibility { kNone, kMixed, kAll };

// A matrix with any strides.
template <class Real>
struct BasicMatrix {
  const Real* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};

// The number of rows over which sums for keys are made before they are added to the sums of other
// rows: the rows of a full panel of the narrowest vectors. Panels begin at its multiples, so that
// the order of additions does not depend on the instruction set.
template <class Real>
inline constexpr std::int32_t kSummedRows = kPanelVectors * 16 / static_cast<int>(sizeof(Real));

// The rows of a full panel of the widest vectors, a multiple of those of all others.
template <class Real>
inline constexpr std::int32_t kWidestPanelRows = kPanelVectors * 64 /
                                                 static_cast<int>(sizeof(Real));

// The rows of a panel from `begin` to before `end`.
struct PanelPart {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

// Calls sum(part) for the parts of these rows, which end at multiples of kSummedRows.
template <class Real, class Sum>
void for_summed_rows(PanelPart rows, const Sum& sum) {
  constexpr std::int32_t kRows = kSummedRows<Real>;
  while (rows.begin < rows.end) {
    const PanelPart part{rows.begin, std::min((rows.begin / kRows + 1) * kRows, rows.end)};
    sum(part);
    rows.begin = part.end;
  }
}

// The loops over gradients of scores. Arrays called grad_scores and numbers are [kTileKeys][width],
// and 0 where a row does not see a key.
template <class Real>
struct BasicScoreGradientLoops {
  using ScoreTile = BasicScoreTile<Real>;
  using SumRows = BasicSumRows<Real>;

  // The derivatives of softcap: 1 − tanh², from scores softcap · tanh; 1 where softcap is 0.
  void (*start_derivatives)(const ScoreTile& tile, Real softcap);

  // sums[r] = Σ_j grad_scores[j][r] · |position of row r − key j|
  void (*sum_distances)(const ScoreTile& tile, const Real* grad_scores, Real* sums);

  // rows[r][j] += numbers[j][r], in the order of rows, for the rows that exist.
  void (*add_to_rows)(const ScoreTile& tile, const Real* numbers, const SumRows& rows);

  // products[i] = Σ_r numbers[r] · a(i, r), added in the order of the rows r of the part; nothing
  // is added where a number is 0. The rows of `a` are those of a panel, `width` apart.
  void (*dot_rows)(const BasicMatrix<Real>& a, PanelPart part, const Real* numbers, Real* products);

  // sums[j][r] += tile.scores[j][r] · factors[r], where that score is not 0.
  void (*add_scaled)(const ScoreTile& tile, const Real* factors, Real* sums);

  // Sums over equal r − j · key_step, counted from the last key and the first row of the tile, of
  // the rows of a part: sums[r + (end − 1 − j) · key_step] += numbers[j][r]
  void (*sum_diagonals)(const ScoreTile& tile, PanelPart part, const Real* numbers,
                        std::int32_t key_step, Real* sums);
};

// The loops over scores.
template <class Real>
struct BasicScoreLoops {
  using ScoreTile = BasicScoreTile<Real>;

  // For the keys of the tile from its `begin` to its `end`:
  // score = softcap · tanh(score / softcap)
  void (*cap)(const ScoreTile& tile, Real softcap);
  // score −= slopes[r] · |position of row r − key|
  void (*add_alibi)(const ScoreTile& tile, const Real* slopes);
  // score += element
  void (*add_rows)(const ScoreTile& tile, const ScoreRows<Real>& rows);
  // score of row r and key j += first[r − j · key_step], for all rows of the tile's width
  void (*add_diagonals)(const ScoreTile& tile, const Real* first, std::int32_t key_step);

  // sums[r] += Σ_j numbers[j][r] over the keys from the tile's `begin` to its `end`
  void (*sum_keys)(const ScoreTile& tile, const Real* numbers, Real* sums);
  // out[i][r] += Σ_s a(i, s) · b[s][r], for `width` columns; nothing is added where b is 0.
  void (*multiply_rows)(const BasicMatrix<Real>& a, const Real* b, std::int32_t width, Real* out);
  // Adds rows to an additive mask, which is a tile of numbers to add to scores, −infinity for
  // hidden keys.
  void (*add_mask_rows)(const ScoreTile& mask, const ScoreRows<float>& rows);
  const BasicScoreGradientLoops<Real>* gradients;
};

}}}  // namespace heed::v0::kernels
