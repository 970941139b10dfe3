// The kernels of the backward pass: what they work on beside panels and tiles, and their table.
#pragma once

#include <cstdint>

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 { namespace kernels {

// Rows of a panel as rows of vectors, for the products that sum over rows. Dimensions are padded
// with 0 to whole vectors and cut into strips of BackwardTable::column_vectors of them, the last
// one perhaps narrower; each strip holds all rows, one behind the other. In pairs a strip holds
// those of rows 2i and 2i + 1, then what fills up a tile with 0, where there are tiles, and nothing
// in the rest of its room; and what is multiplied by the rows is multiplied by `scale` before it is
// rounded.
template <class Real>
struct BasicRowVectors {
  const Real* data = nullptr;
  std::int32_t num_rows = 0;  // rows that exist
  std::int32_t capacity = 0;  // rows a strip has room for
  std::int32_t vectors = 0;   // of a row
  Real scale = 1;
};

// Rows of tensors, and what each is multiplied by. Null stands for a row of zeros.
template <class Real>
struct BasicFactoredRows {
  const Real* const* data = nullptr;  // [width]
  const Real* factors = nullptr;      // [width]
};

// The logarithms of the denominators of a panel's rows, and what these lack: null where the rows of
// grad_out are multiplied by what follows from it.
template <class Real>
struct BasicRowLse {
  const Real* lse = nullptr;  // [width]: infinite for rows that weigh nothing
  const Real* low = nullptr;  // [width]
};

// What attend() left of a tile: weights, [kTileKeys][width], in units of 2^m, or kUnseen, and −m,
// [width].
template <class Real>
struct BasicKeptTile {
  const Real* weights = nullptr;
  const Real* minus_m = nullptr;
};

// What one tile's keys gain: row j of [num_keys] at data + j · stride, in whole vectors.
template <class Real>
struct BasicKeySums {
  Real* data = nullptr;
  std::int64_t stride = 0;
};

// What one tile's scores are added to: that of row r and key j at data[r] + j · key_stride. Rows
// may share what they add to.
template <class Real>
struct BasicSumRows {
  Real* const* data = nullptr;  // [num_rows]
  std::int64_t key_stride = 0;
};

// A panel's weights are those before dropout. Arrays called weights, grad_scores, factors and
// numbers are [kTileKeys][width]; 0 stands for every cell that is hidden.
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

  // weights = 2^(exponent + m − lse · log2 e), below 2⁻¹⁰⁰ exactly 0, with the exponents and the m
  // of attend(): tiles must come in the same order, and the state begin with every chunk of keys;
  // its sum and out are not touched. Rows whose lse is infinite weigh nothing. Cells outside the
  // panel's segments are not written.
  void (*weigh)(const Tile& tile, const Panel& panel, PanelState& state, const RowLse& lse,
                Real* weights);

  // The same, without their exponents, from weights that attend() left of the same panel and tile:
  // weights = kept · 2^(m − lse · log2 e).
  void (*weigh_kept)(const Tile& tile, const Panel& panel, const KeptTile& kept, const RowLse& lse,
                     Real* weights);

  // weights = 2^((score − lse) · log2 e), in place and for every cell, from scores in natural units
  // that somebody modified.
  void (*weigh_scores)(const Tile& tile, const Panel& panel, const RowLse& lse, Real* scores);

  // grad_scores = weights ∘ (dropout ∘ (value · grad_out) − delta), where delta[r] is
  // Σ_d grad_out · out. Cells outside the panel's
  // segments are not written, unless `whole` is asked for.
  struct GradScores {
    const Real* grad_out = nullptr;  // [value_dim][width]; in pairs [⌈value_dim / 2⌉][width]
    const Real* weights = nullptr;
    const Real* delta = nullptr;
    const Real* dropout = nullptr;  // null where every weight is kept
    bool whole = false;
    bool fetches = false;  // what the tile is to fetch, which no kernel of weights has
  };
  void (*grad_scores)(const Tile& tile, const Panel& panel, const GradScores& terms,
                      Real* grad_scores);

  // What dropout multiplies weights by.
  void (*fill_dropout)(const Tile& tile, const Panel& panel, const DropoutRows& dropout,
                       Real* factors);

  // The derivatives of scores that were capped: 1 − tanh², from softcap · tanh; 1 where softcap is
  // 0.
  void (*start_derivatives)(const ScoreTile& tile, Real softcap);

  // sums[r] = Σ_j grad_scores[j][r] · |position of row r − key j|
  void (*sum_distances)(const ScoreTile& tile, const Real* grad_scores, Real* sums);

  // rows[r][j] += numbers[j][r], in the order of rows, for the rows that exist.
  void (*add_to_rows)(const ScoreTile& tile, const Real* numbers, const SumRows& rows);

  // products[i] = Σ_r numbers[r] · rows[i][r] for `count` rows of `width` each; where a number is 0
  // nothing is added.
  void (*dot_rows)(const Real* numbers, const Real* rows, std::int64_t count, std::int32_t width,
                   Real* products);

  // sums[j][r] += tile.scores[j][r] · factors[r], where that score is not 0.
  void (*add_scaled)(const ScoreTile& tile, const Real* factors, Real* sums);

  // sums of r − j · key_step, counted from the tile's begin and first row: sums[r + (end − 1 − j) ·
  // key_step] += numbers[j][r], for the rows that exist.
  void (*sum_diagonals)(const ScoreTile& tile, const Real* numbers, std::int32_t key_step,
                        Real* sums);

  // numbers = numbers ∘ factors, and 0 where numbers are 0, for every cell.
  void (*multiply)(const Tile& tile, const Panel& panel, const Real* factors, Real* numbers);

  // sums[d][r] += Σ_j key[j][d] · grad_scores[j][r]. With `guarded`, 0 times anything is
  // nothing: slower, and needed only where a key is not finite.
  void (*add_to_query)(const Tile& tile, const Panel& panel, bool guarded, Real* grad_scores,
                       Real* sums);

  // sums[j] += Σ_r numbers[j][r] · rows[r], in the order of rows. `guarded` as above, for rows.
  void (*add_to_keys)(const Tile& tile, const Panel& panel, Real* numbers, const RowVectors& rows,
                      bool guarded, const KeySums& sums);

  // The rows of a panel, numbers that are bfloat16, become pairs where these are multiplied. Null
  // elsewhere.
  void (*pair_rows)(const RowVectors& rows, Real* data);

  // delta[r] = Σ_d grad_out[d][r] · out[r][d] over value_dim numbers, in the order in which
  // grad_scores sums: so a row with one weight of 1 gets exactly 0. Where out is 0 nothing is
  // added: the grad_out of a row that sees nothing may be NaN. A row of `out` that is null stands
  // for zeros. `pairs` is memory for [value_dim][width] numbers, null where no pairs are
  // multiplied.
  void (*find_delta)(const Panel& panel, const Real* grad_out, const Real* const* out, Real* pairs,
                     Real* delta);

  // Writes a panel's rows of `dim` numbers, each times its factor, as rows of vectors, and returns
  // whether all are finite.
  bool (*fill_rows)(const FactoredRows& rows, std::int32_t dim, const RowVectors& place,
                    Real* data);
  // packed[d][r] = factors[r] · rows[r][d] for `dim` numbers of `width` rows.
  void (*pack_rows)(const FactoredRows& rows, std::int32_t width, std::int32_t dim, Real* packed);

  // Whether the keys of a tile are finite.
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
