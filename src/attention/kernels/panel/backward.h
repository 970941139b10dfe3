// The kernels of the backward pass: their arguments besides panels and tiles, and their table.
#pragma once

#include <cstdint>

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 { namespace kernels {

// Rows of a panel as rows of vectors, for products that sum over rows. Dimensions are padded with 0
// to whole vectors and divided into strips of BackwardTable::column_vectors vectors, of which the
// last may be narrower; each strip has all rows, one after the other. With pairs, a strip has the
// pairs of rows 2i and 2i + 1, then zeros up to a whole AMX tile where there are tiles, and the
// rest of its room is not used. Numbers that are multiplied by these rows are multiplied by `scale`
// before they are rounded.
template <class Real>
struct BasicRowVectors {
  const Real* data = nullptr;
  std::int32_t num_rows = 0;  // rows that exist
  std::int32_t capacity = 0;  // rows for which a strip has room
  std::int32_t vectors = 0;   // of a row
  Real scale = 1;
};

// Rows of tensors and a factor for each. A null row stands for zeros.
template <class Real>
struct BasicFactoredRows {
  const Real* const* data = nullptr;  // [width]
  const Real* factors = nullptr;      // [width]
};

// The logarithms of the denominators of a panel's rows and their rounding errors; `low` is null if
// the rows of grad_out have been corrected instead.
template <class Real>
struct BasicRowLse {
  const Real* lse = nullptr;  // [width]: infinite for rows whose weights are 0
  const Real* low = nullptr;  // [width]
};

// The state of a tile after attend(): weights, [kTileKeys][width], in units of 2^m, or kUnseen, and
// −m, [width].
template <class Real>
struct BasicKeptTile {
  const Real* weights = nullptr;
  const Real* minus_m = nullptr;
};

// Sums for the keys of a tile: row j of [num_keys] is at data + j · stride, in whole vectors.
template <class Real>
struct BasicKeySums {
  Real* data = nullptr;
  std::int64_t stride = 0;
};

// The kernels of the backward pass. Weights are those before dropout. Arrays called weights,
// grad_scores, factors and numbers are [kTileKeys][width], and 0 where a row does not see a key.
template <class Real>
struct BasicBackwardTable {
  using Tile = BasicTile<Real>;
  using ScoreTile = BasicScoreTile<Real>;
  using Panel = BasicPanel<Real>;
  using PanelState = BasicPanelState<Real>;
  using DropoutRows = BasicDropoutRows<Real>;
  using RowVectors = BasicRowVectors<Real>;
  using FactoredRows = BasicFactoredRows<Real>;
  using RowLse = BasicRowLse<Real>;
  using KeptTile = BasicKeptTile<Real>;
  using KeySums = BasicKeySums<Real>;
  using SumRows = BasicSumRows<Real>;

  std::int32_t column_vectors;
  // The loops over gradients of scores that terms use.
  BasicScoreGradientLoops<Real> loops;

  // weights = 2^(exponent + m − lse · log2 e), exactly 0 if below 2⁻¹⁰⁰, with the exponents and the
  // m of attend(): tiles must come in the same order, and the state must be reset for every chunk
  // of keys; its sum and out are not used. Weights of rows whose lse is infinite are 0. Cells
  // outside the panel's segments are not written.
  void (*weigh)(const Tile& tile, const Panel& panel, PanelState& state, const RowLse& lse,
                Real* weights);

  // weights = kept · 2^(m − lse · log2 e), without computing exponents, from the weights that
  // attend() computed for the same panel and tile.
  void (*weigh_kept)(const Tile& tile, const Panel& panel, const KeptTile& kept, const RowLse& lse,
                     Real* weights);

  // weights = 2^((score − lse) · log2 e), in place and for every cell, from scores in natural units
  // that terms have changed.
  void (*weigh_scores)(const Tile& tile, const Panel& panel, const RowLse& lse, Real* scores);

  // grad_scores = weights ∘ (dropout ∘ (value · grad_out) − delta), where delta[r] = Σ_d grad_out ·
  // out. Cells outside the panel's segments are not written, unless `whole` is true.
  struct GradScores {
    const Real* grad_out = nullptr;  // [value_dim][width]; in pairs [⌈value_dim / 2⌉][width]
    const Real* weights = nullptr;
    const Real* delta = nullptr;
    const Real* dropout = nullptr;  // null if no weight is dropped
    bool whole = false;
    // True if the rows to fetch are fetched here, as no kernel of weights has done so.
    bool fetches = false;
  };
  void (*grad_scores)(const Tile& tile, const Panel& panel, const GradScores& terms,
                      Real* grad_scores);

  // Sets factors to the factors of dropout for weights.
  void (*fill_dropout)(const Tile& tile, const Panel& panel, const DropoutRows& dropout,
                       Real* factors);

  // numbers = numbers ∘ factors, and 0 where numbers are 0, for every cell.
  void (*multiply)(const Tile& tile, const Panel& panel, const Real* factors, Real* numbers);

  // sums[d][r] += Σ_j key[j][d] · grad_scores[j][r]. With `guarded`, products with 0 are left out,
  // which is slower and needed only if a key is not finite.
  void (*add_to_query)(const Tile& tile, const Panel& panel, bool guarded, Real* grad_scores,
                       Real* sums);

  // sums[j] += Σ_r numbers[j][r] · rows[r], in the order of rows. `guarded` as above, for rows that
  // are not finite.
  void (*add_to_keys)(const Tile& tile, const Panel& panel, Real* numbers, const RowVectors& rows,
                      bool guarded, const KeySums& sums);

  // Turns the rows of a panel, numbers that are bfloat16, into pairs, where pairs are multiplied.
  // Null otherwise.
  void (*pair_rows)(const RowVectors& rows, Real* data);

  // delta[r] = Σ_d grad_out[d][r] · out[r][d] over value_dim numbers, in the order of the sums of
  // grad_scores, so that a row with a single weight of 1 gets exactly 0. Nothing is added where out
  // is 0, as the grad_out of a row that sees no key may be NaN. A null row of `out` stands for
  // zeros. `pairs` has room for [value_dim][width] numbers, and is null where no pairs are
  // multiplied.
  void (*find_delta)(const Panel& panel, const Real* grad_out, const Real* const* out, Real* pairs,
                     Real* delta);

  // Writes a panel's rows of `dim` numbers, each multiplied by its factor, as rows of vectors, and
  // returns true if all are finite.
  bool (*fill_rows)(const FactoredRows& rows, std::int32_t dim, const RowVectors& place,
                    Real* data);
  // packed[d][r] = factors[r] · rows[r][d] for `dim` numbers of `width` rows.
  void (*pack_rows)(const FactoredRows& rows, std::int32_t width, std::int32_t dim, Real* packed);

  // True if the keys of a tile are finite.
  bool (*has_finite_keys)(const Tile& tile, std::int32_t head_dim);
};

using RowVectors = BasicRowVectors<float>;
using FactoredRows = BasicFactoredRows<float>;
using RowLse = BasicRowLse<float>;
using KeptTile = BasicKeptTile<float>;
using KeySums = BasicKeySums<float>;
using SumRows = BasicSumRows<float>;
using BackwardTable = BasicBackwardTable<float>;

}}}  // namespace heed::v0::kernels
