// The table of the kernels of the backward pass, compiled once for each instruction set.
#if defined(HEED_BACKWARD_TABLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_BACKWARD_TABLE_INL_H_
#undef HEED_BACKWARD_TABLE_INL_H_
#else
#define HEED_BACKWARD_TABLE_INL_H_
#endif

#include <algorithm>

#include "attention/kernels/panel/backward-inl.h"
#include "attention/kernels/panel/by_width-inl.h"
#include "hwy/highway.h"
#include "simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

namespace {

void recompute(const Tile& tile, const Panel& panel, PanelState& state, const RowLse& lse,
               Real* weights) {
  by_width<Recompute>(panel.vectors, tile, panel, state, lse, weights);
}

void weigh_kept(const Tile& tile, const Panel& panel, const KeptTile& kept, const RowLse& lse,
                Real* weights) {
  by_width<WeighKept>(panel.vectors, tile, panel, kept, lse, weights);
}

void weigh_scores(const Tile& tile, const Panel& panel, const RowLse& lse, Real* scores) {
  by_width<WeighScores>(panel.vectors, tile, panel, lse, scores);
}

void grad_scores(const Tile& tile, const Panel& panel, const BackwardTable::GradScores& terms,
                 Real* grads) {
  by_width<GradScores>(panel.vectors, tile, panel, terms, grads);
}

void fill_dropout(const Tile& tile, const Panel& panel, const DropoutRows& dropout, Real* factors) {
  by_width<FillDropout>(panel.vectors, tile, panel, dropout, factors);
}

void start_derivatives(const ScoreTile& tile, Real softcap) {
  const Vec one = hn::Set(kReals, 1.0F);
  const Vec inverse = hn::Set(kReals, softcap == 0 ? 0.0F : 1 / softcap);
  for (std::int32_t i = tile.begin * tile.width; i < tile.end * tile.width; i += kLanes) {
    Vec derivative = one;
    if (softcap != 0) {
      const Vec tanh = hn::Mul(hn::Load(kReals, tile.scores + i), inverse);
      derivative = hn::NegMulAdd(tanh, tanh, one);
    }
    hn::Store(derivative, kReals, tile.derivatives + i);
  }
}

void sum_distances(const ScoreTile& tile, const Real* grad_scores, Real* sums) {
  const Indices integers;
  for (std::int32_t r = 0; r < tile.width; r += kLanes) {
    const auto q_idx = hn::LoadU(integers, tile.q_idx + r);
    Vec sum = hn::Zero(kReals);
    for (std::int32_t j = tile.begin; j < tile.end; ++j) {
      const auto distance = hn::Abs(hn::Sub(q_idx, hn::Set(integers, tile.first_key + j)));
      const Vec grad = hn::Load(kReals, grad_scores + j * tile.width + r);
      sum = hn::MulAdd(grad, to_reals(distance), sum);
    }
    hn::Store(sum, kReals, sums + r);
  }
}

// Transposes squares of lanes, so that neighbouring keys are added at once.
void add_to_rows(const ScoreTile& tile, const Real* numbers, const SumRows& rows) {
  const auto number_at = [&](std::int32_t j, std::int32_t r) {
    return numbers + j * tile.width + r;
  };
  for (std::int32_t r = 0; r < tile.num_rows; r += kLanes) {
    const std::int32_t count = std::min(tile.num_rows - r, kLanes);
    std::int32_t key = tile.begin;
    for (; rows.key_stride == 1 && key + kLanes <= tile.end; key += kLanes) {
      Vec square[kLanes];
      for (int i = 0; i < kLanes; ++i) square[i] = hn::Load(kReals, number_at(key + i, r));
      transpose(square);
      for (int i = 0; i < count; ++i) {
        Real* sums = rows.data[r + i] + key;
        hn::StoreU(hn::Add(hn::LoadU(kReals, sums), square[i]), kReals, sums);
      }
    }
    for (int i = 0; i < count; ++i) {
      for (std::int32_t j = key; j < tile.end; ++j) {
        rows.data[r + i][j * rows.key_stride] += *number_at(j, r + i);
      }
    }
  }
}

// True for the lanes of a vector of rows, from `first` on, that belong to the part.
HWY_INLINE hn::Mask<Reals> lanes_of(PanelPart part, std::int32_t first) {
  const auto before = [&](std::int32_t row) HWY_ATTR {
    return hn::FirstN(kReals, static_cast<std::size_t>(std::max(row - first, 0)));
  };
  return hn::AndNot(before(part.begin), before(part.end));
}

// The sums of neighbouring keys overlap, and a processor that loads what it has just stored waits
// if the two ranges overlap but differ. Therefore there are several copies of the sums, used in
// turn for neighbouring keys, so many that successive uses of one copy are kLanes elements or some
// time apart.
void sum_diagonals(const ScoreTile& tile, PanelPart part, const Real* numbers,
                   std::int32_t key_step, Real* sums) {
  constexpr std::int32_t kApart = 8;
  HWY_ALIGN Real copies[kApart * (kTileKeys + kMaxPanelWidth)];
  const std::int32_t size = (tile.end - tile.begin) * key_step + tile.width;
  const std::int32_t num_copies = std::max(1, kApart / key_step);
  std::fill_n(copies, num_copies > 1 ? num_copies * size : 0, Real{0});
  for (std::int32_t j = tile.begin; j < tile.end; ++j) {
    Real* const all = num_copies > 1 ? copies + j % num_copies * size : sums;
    Real* const from = all + (tile.end - 1 - j) * key_step;
    for (std::int32_t r = part.begin / kLanes * kLanes; r < part.end; r += kLanes) {
      const Vec added = hn::IfThenElseZero(
          lanes_of(part, r), hn::Load(kReals, numbers + std::int64_t{j} * tile.width + r));
      hn::StoreU(hn::Add(hn::LoadU(kReals, from + r), added), kReals, from + r);
    }
  }
  for (std::int32_t copy = 0; copy < (num_copies > 1 ? num_copies : 0); ++copy) {
    for (std::int32_t i = 0; i < size; ++i) sums[i] += copies[copy * size + i];
  }
}

// Lanes are the elements of products, so that rows are added one after the other.
void dot_rows(const Matrix& a, PanelPart part, const Real* numbers, Real* products) {
  HWY_ALIGN Real sums[kLanes];
  for (std::int64_t i = 0; i < a.rows; i += kLanes) {
    Vec sum = hn::Zero(kReals);
    for (std::int32_t r = part.begin / kLanes * kLanes; r < part.end; r += kLanes) {
      Vec columns[kLanes];
      load_columns(a.data + r, a.row_stride, i, a.rows, columns);
      const std::int32_t end = std::min(part.end - r, kLanes);
      for (std::int32_t lane = std::max(part.begin - r, 0); lane < end; ++lane) {
        const Real number = numbers[r + lane];
        if (number != 0) sum = hn::MulAdd(hn::Set(kReals, number), columns[lane], sum);
      }
    }
    hn::Store(sum, kReals, sums);
    std::copy_n(sums, std::min<std::int64_t>(a.rows - i, kLanes), products + i);
  }
}

void add_scaled(const ScoreTile& tile, const Real* factors, Real* sums) {
  for (std::int32_t j = tile.begin; j < tile.end; ++j) {
    const std::int64_t row = static_cast<std::int64_t>(j) * tile.width;
    for (std::int32_t r = 0; r < tile.width; r += kLanes) {
      const Vec score = hn::Load(kReals, tile.scores + row + r);
      const Vec sum = hn::Load(kReals, sums + row + r);
      const Vec added = hn::Add(sum, hn::Mul(score, hn::Load(kReals, factors + r)));
      hn::Store(hn::IfThenElse(hn::Eq(score, hn::Zero(kReals)), sum, added), kReals,
                sums + row + r);
    }
  }
}

void multiply(const Tile& tile, const Panel& panel, const Real* factors, Real* numbers) {
  by_width<Multiply>(panel.vectors, tile, panel, factors, numbers);
}

void add_to_query(const Tile& tile, const Panel& panel, bool guarded, Real* grads, Real* sums) {
  by_width<AddToQuery>(panel.vectors, tile, panel, guarded, grads, sums);
}

void add_to_keys(const Tile& tile, const Panel& panel, Real* numbers, const RowVectors& rows,
                 bool guarded, const KeySums& sums) {
  by_width<AddToKeys>(panel.vectors, tile, panel, numbers, rows, guarded, sums);
}

#if HEED_HAS_PAIRS
void find_delta(const Panel& panel, const Real* grad_out, const Real* const* out, Real* pairs,
                Real* delta) {
  const std::int32_t width = panel.vectors * kLanes;
  pack(out, width, panel.value_dim, 1, pairs);
  pair_rows<First::kLower>(pairs, panel.value_dim, width, 0, pairs);
  for (std::int32_t r = 0; r < width; r += kLanes) {
    Vec sum = hn::Zero(kReals);
    const auto add = [&](std::int32_t d, const auto& to) HWY_ATTR {
      const Vec result = hn::Load(kReals, pairs + d * width + r);
      return add_nonzero_product(result, hn::Load(kReals, grad_out + d * width + r), to);
    };
#if HEED_HAS_TILES
    for (std::int32_t first = 0; first < elements_of(panel.value_dim); first += kTilePairs) {
      TileChain chain = TileChain::empty();
      for (std::int32_t i = 0; i < kTilePairs; ++i) chain = add(first + i, chain);
      sum = chain.total(sum);
    }
#else
    for (std::int32_t d = 0; d < elements_of(panel.value_dim); ++d) sum = add(d, sum);
#endif
    hn::Store(sum, kReals, delta + r);
  }
}
#else
void find_delta(const Panel& panel, const Real* grad_out, const Real* const* out, Real*,
                Real* delta) {
  const std::int32_t width = panel.vectors * kLanes;
  const std::int32_t dims = panel.value_dim / kBlockLanes * kBlockLanes;
  for (std::int32_t r = 0; r < width; r += kLanes) {
    Vec sum = hn::Zero(kReals);
    const auto add = [&](std::int32_t d, Vec column) HWY_ATTR {
      sum = add_nonzero_product(column, hn::Load(kReals, grad_out + d * width + r), sum);
    };
    if (std::count(out + r, out + r + kLanes, nullptr) < kLanes) {
      const SomeRows some(out + r);
      visit_columns(some.rows, dims, add);
      for (std::int32_t d = dims; d < panel.value_dim; ++d) {
        HWY_ALIGN Real column[kLanes];
        for (int i = 0; i < kLanes; ++i) column[i] = some.rows[i][d];
        add(d, hn::Load(kReals, column));
      }
      sum = hn::IfThenElseZero(some.exist, sum);
    }
    hn::Store(sum, kReals, delta + r);
  }
}
#endif

// The numbers of a row from `first` on, and 0 after its last one.
HWY_INLINE Vec load_some(const Real* row, std::int32_t first, std::int32_t dim) {
  if (first + kLanes <= dim) return hn::LoadU(kReals, row + first);
  HWY_ALIGN Real numbers[kLanes] = {};
  std::copy(row + first, row + dim, numbers);
  return hn::Load(kReals, numbers);
}

bool fill_rows(const FactoredRows& rows, std::int32_t dim, const RowVectors& place, Real* data) {
  Vec products = hn::Zero(kReals);
  for (std::int32_t r = 0; r < place.capacity; ++r) {
    const Real* const row = rows.data[r];
    const Vec factor = hn::Set(kReals, rows.factors[r]);
    for (std::int32_t first = 0; first < place.vectors; first += kColumnVectors) {
      const std::int32_t vectors = std::min(place.vectors - first, kColumnVectors);
      Real* const target =
          data + (std::int64_t{first} * place.capacity + std::int64_t{r} * vectors) * kLanes;
      for (std::int32_t v = 0; v < vectors; ++v) {
        Vec numbers = hn::Zero(kReals);
        if (row != nullptr) {
          numbers = hn::Mul(load_some(row, (first + v) * kLanes, dim), factor);
          products = hn::MulAdd(numbers, hn::Zero(kReals), products);
        }
        hn::Store(numbers, kReals, target + v * kLanes);
      }
    }
  }
  return hn::AllTrue(kReals, hn::Eq(products, hn::Zero(kReals)));
}

void pack_rows(const FactoredRows& rows, std::int32_t width, std::int32_t dim, Real* packed) {
  pack_by(rows.data, width, dim, RowFactors{rows.factors}, packed);
}

#if HEED_HAS_PAIRS
bool has_finite_keys(const Tile& tile, std::int32_t head_dim) {
  for (std::int32_t key = 0; key < tile.num_keys; ++key) {
    if (!are_finite_pairs(tile.key + key * tile.key_stride, elements_of(head_dim))) return false;
  }
  return true;
}
#else
// 0 · x is 0 unless x is infinite or NaN.
bool has_finite_keys(const Tile& tile, std::int32_t head_dim) {
  Vec products = hn::Zero(kReals);
  Real rest = 0;
  for (std::int32_t key = 0; key < tile.num_keys; ++key) {
    const Real* const numbers = tile.key + key * tile.key_stride;
    std::int32_t i = 0;
    for (; i + kLanes <= head_dim; i += kLanes) {
      products = hn::MulAdd(hn::LoadU(kReals, numbers + i), hn::Zero(kReals), products);
    }
    for (; i < head_dim; ++i) rest += numbers[i] * 0.0F;
  }
  return rest == 0 && hn::AllTrue(kReals, hn::Eq(products, hn::Zero(kReals)));
}
#endif

#if HEED_HAS_PAIRS
void pair_strips(const RowVectors& rows, Real* data) {
  for (std::int32_t first = 0; first < rows.vectors; first += kColumnVectors) {
    const std::int32_t width = std::min(rows.vectors - first, kColumnVectors) * kLanes;
    Real* const strip = data + std::int64_t{first} * kLanes * rows.capacity;
    pair_rows<First::kLower>(strip, rows.capacity, width, 0, strip);
#if HEED_HAS_TILES
    const std::int32_t pairs = rows.capacity / 2;
    const std::int32_t whole_tiles = (pairs + kTilePairs - 1) / kTilePairs * kTilePairs;
    std::fill(strip + pairs * width, strip + whole_tiles * width, Real{0});
#endif
  }
}
constexpr auto kPairRows = pair_strips;
#else
constexpr void (*kPairRows)(const RowVectors&, Real*) = nullptr;
#endif

}  // namespace

const BackwardTable* backward_table() {
  static const BackwardTable table{.column_vectors = kColumnVectors,
                                   .loops = {.start_derivatives = start_derivatives,
                                             .sum_distances = sum_distances,
                                             .add_to_rows = add_to_rows,
                                             .dot_rows = dot_rows,
                                             .add_scaled = add_scaled,
                                             .sum_diagonals = sum_diagonals},
                                   .weigh = recompute,
                                   .weigh_kept = weigh_kept,
                                   .weigh_scores = weigh_scores,
                                   .grad_scores = grad_scores,
                                   .fill_dropout = fill_dropout,
                                   .multiply = multiply,
                                   .add_to_query = add_to_query,
                                   .add_to_keys = add_to_keys,
                                   .pair_rows = kPairRows,
                                   .find_delta = find_delta,
                                   .fill_rows = fill_rows,
                                   .pack_rows = pack_rows,
                                   .has_finite_keys = has_finite_keys};
  return &table;
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_BACKWARD_TABLE_INL_H_
