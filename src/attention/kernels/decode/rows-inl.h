// The decode kernel, for rows that are too few to fill vectors: lanes are keys in the first product
// and columns of values in the second. Keys and values are read as they are stored.
#if defined(HEED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ROWS_INL_H_
#undef HEED_ROWS_INL_H_
#else
#define HEED_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "attention/kernels/decode/key_rows-inl.h"
#include "attention/kernels/decode/prefetch.h"
#include "attention/kernels/decode/reading-inl.h"
#include "attention/kernels/decode/stored-inl.h"
#include "attention/kernels/integers/integers.h"
#include "attention/kernels/kernels.h"
#include "attention/kernels/panel/softmax-inl.h"
#include "hwy/highway.h"
#include "simd/exp2-inl.h"
#include "simd/product-inl.h"
#if HEED_HAS_TILES
#include "attention/kernels/amx/tiles-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// kRows rows of a decode panel. Every sum has the order of PanelKernel, step by step, and so the
// same bits; a tile is always computed in two passes. With pairs, the elements of rows of keys are
// pairs, of the size of a float; columns of keys, and values, are paired as they are read.
template <int kRows, Reading kReading>
struct RowsKernel {
  const StoredTile& tile;
  const StoredTile* next;  // null if there is none, or it is not to be fetched
  const Panel& panel;
  const PanelOptions& options;
  PanelState& state;
  Real* HWY_RESTRICT weights;  // [kRows][kTileKeys]
  std::int32_t first_row;
  std::int32_t begin;  // the range of keys of the tile that some row of the panel sees
  std::int32_t end;

  // The number of vectors of keys, or of columns, that all rows are multiplied by at once. Their
  // sums are independent chains, and a broadcast element of a row serves all of them.
  static constexpr int kVectors = kRows <= (kHasManyRegisters && !kInTiles ? 6 : 2) ? 4 : 2;
  static constexpr bool kRowsInOrder = kReading == Reading::kRowsInOrder;
  static constexpr bool kInOrder = kReading == Reading::kInOrder || kRowsInOrder;
  static constexpr bool kGuarded = kReading == Reading::kGuarded;
  // True if numbers may be quantised: rows of keys never are, and numbers read in order only for
  // one row.
  static constexpr bool kMayBeQuantised = !kInOrder || (kRows == 1 && !kRowsInOrder);
  // True if numbers may be of half precision: see can_be_read_in_order().
  static constexpr bool kMayBeHalves = kReading != Reading::kInOrder || kRows == 1;
  using LoadedReals =
      std::conditional_t<kReading == Reading::kInOrder, RealNumbersInHalves, RealNumbers>;
  // The number of groups whose values are summed together.
  static constexpr std::int32_t kTogether = std::max(kKeysTogether / kGroupKeys, 1);
  static constexpr int kKeyVectors = kInOrder ? kGroupKeys / kLanes : kVectors;
  static constexpr int kMostValueVectors =
      kInOrder && kRows <= kMostRowsOfEightVectors ? 8 : kVectors;

  HWY_INLINE RowsKernel(const StoredTile& t, const StoredTile* n, const Panel& p,
                        const PanelOptions& o, PanelState& s, Real* w, std::int32_t first)
      : tile(t), next(n), panel(p), options(o), state(s), weights(w), first_row(first) {
    begin = std::max(panel.any_begin - tile.first_key, 0);
    end = std::min(panel.any_end - tile.first_key, tile.num_keys);
  }

  HWY_INLINE TileSide keys_of(const StoredTile& t) const {
    return {t.key, t.num_keys, panel.head_dim, sizeof(Real)};
  }
  HWY_INLINE TileSide values_of(const StoredTile& t) const {
    return {t.value, t.num_keys, panel.value_dim, sizeof(Real)};
  }

  // The prefetches during the product with keys and during that with values, in `steps` steps.
  HWY_INLINE Prefetch fetch_beside_keys(std::int64_t steps) const {
    if (kRowsInOrder) return Prefetch();
    return Prefetch::beside<kInOrder>(keys_of(tile), values_of(tile), options.stretches, steps);
  }
  HWY_INLINE Prefetch fetch_beside_values(std::int64_t steps) const {
    if (kRowsInOrder || next == nullptr) return Prefetch();
    return Prefetch::beside<kInOrder>(values_of(tile), keys_of(*next), options.stretches, steps);
  }

  void attend() const {
    if (begin >= end) return;
    find_exponents();
    for (int r = 0; r < kRows; ++r) {
      if (options.has_mask) {
        move(r, largest_of_scores(r));
        turn_into_exponents(r);
        weigh(r, 0);
      } else {
        weigh(r, move(r, largest_exponent(r)));
      }
    }
    add_values();
  }

  // sums[row][v] += query · key for dimension d of these vectors of keys.
  template <class Columns, class Sum, int kCount>
  HWY_INLINE void add_column(const Columns (&columns)[kCount], std::int32_t d,
                             const Real* HWY_RESTRICT query, Sum (&sums)[kRows][kCount]) const {
    Vec keys[kCount];
    for (int v = 0; v < kCount; ++v) keys[v] = columns[v].load(d);
    for (int r = 0; r < kRows; ++r) {
      const Vec element = broadcast(query + r);
      for (int v = 0; v < kCount; ++v) sums[r][v] = add_product(keys[v], element, sums[r][v]);
    }
  }

  template <int kCount>
  HWY_INLINE void start_sums(Vec (&sums)[kRows][kCount]) const {
    for (int r = 0; r < kRows; ++r) {
      const Real start = kInPairs || options.has_mask ? 0 : state.minus_m[first_row + r];
      for (int v = 0; v < kCount; ++v) sums[r][v] = hn::Set(kReals, start);
    }
  }
  template <int kCount>
  HWY_INLINE void store_sums(const Vec (&sums)[kRows][kCount], std::int32_t key) const {
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kCount; ++v) {
        hn::Store(scaled(r, sums[r][v]), kReals, weights + r * kTileKeys + key + v * kLanes);
      }
    }
  }
  // The product times scale, where the query could not be multiplied by it before.
  HWY_INLINE Vec scaled(int r, Vec product) const {
    if (!kInPairs) return product;
    const Vec scale = hn::Set(kReals, panel.scale);
    if (options.has_mask) return hn::Mul(product, scale);
    return hn::MulAdd(product, scale, hn::Set(kReals, state.minus_m[first_row + r]));
  }

  // Computes the exponents, or with a mask the scores, of the vectors of keys in which some row
  // sees one. Columns is PlainColumns, PairColumns or KeyRows.
  template <class Columns>
  HWY_INLINE void find_exponents() const {
    constexpr int kCount = std::min(kKeyVectors, Columns::kMostVectors);
    constexpr int kStep = kCount * kLanes;
    // Vectors beyond the last group repeat it.
    const std::int32_t last_group = (tile.num_keys - 1) / kGroupKeys;
    const std::int32_t first_key = begin / kStep * kStep;
    const std::int32_t dims = elements_of(panel.head_dim);
    const std::int64_t steps = std::int64_t{(end - first_key - 1) / kStep + 1} * ((dims + 1) / 2);
    Prefetch fetched = fetch_beside_keys(steps);
    for (std::int32_t key = first_key; key < end; key += kStep) {
      Columns columns[kCount];
      for (int v = 0; v < kCount; ++v) {
        const std::int32_t at = key + v * kLanes;
        columns[v].start(tile.key, static_cast<std::size_t>(std::min(at / kGroupKeys, last_group)),
                         at % kGroupKeys, tile.num_keys - at, dims);
      }
      Vec sums[kRows][kCount];
      start_sums(sums);
      const Real* HWY_RESTRICT query = panel.query + first_row;
      for (std::int32_t first = 0; first < dims; first += Columns::kDims) {
        for (int v = 0; v < kCount; ++v) columns[v].start_dims(first);
        if constexpr (kRowsInOrder) columns[0].fetch_ahead(first);
        const std::int32_t last = std::min(Columns::kDims, dims - first);
#if HEED_HAS_TILES
        add_tile(columns, query, sums, fetched);
        query += last * panel.num_rows;
#else
        std::int32_t d = 0;
        for (; d + 2 <= last; d += 2, query += 2 * panel.num_rows) {
          fetched.step();
          add_column(columns, d, query, sums);
          add_column(columns, d + 1, query + panel.num_rows, sums);
        }
        if (d < last) add_column(columns, d, query, sums);
#endif
      }
      store_sums(sums, key);
    }
  }
#if HEED_HAS_TILES
  // Adds the products of kTilePairs pairs of dimensions, in the order of an AMX tile.
  template <class Columns, int kCount>
  HWY_INLINE void add_tile(const Columns (&columns)[kCount], const Real* HWY_RESTRICT query,
                           Vec (&sums)[kRows][kCount], Prefetch& fetched) const {
    TileChain chains[kRows][kCount];
    for (auto& of_row : chains) std::fill_n(of_row, kCount, TileChain::empty());
    for (int pair = 0; pair < kTilePairs; ++pair) {
      if (pair % 2 == 0) fetched.step();
      add_column(columns, pair, query + pair * panel.num_rows, chains);
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kCount; ++v) sums[r][v] = chains[r][v].total(sums[r][v]);
    }
  }
#endif
  template <class Numbers>
  HWY_INLINE void find_plain_exponents() const {
    if constexpr (kRowsInOrder) {
      find_exponents<KeyRows<Numbers>>();
    } else if (kInOrder || tile.key.is_columns) {
      find_exponents<PlainColumns<Numbers>>();
    } else {
      find_exponents<KeyRows<Numbers>>();
    }
  }
#if HEED_REAL_BITS == 32 && !HEED_HAS_PAIRS
  // Does the same for quantised keys.
  HWY_INLINE void find_quantised_exponents() const {
    const TileSide keys = keys_of(tile);
    const TileSide values = values_of(tile);
    const QueryDigits query{panel.digits, panel.head_dim};
    panel.integers->multiply_keys(
        {keys, panel.head_dim, begin, end, kInOrder || first_row != 0 ? nullptr : &values,
         kInOrder && fetches_stretch(keys, options.stretches)},
        query.from(first_row), kRows, weights);
    if (options.has_mask) return;
    for (int r = 0; r < kRows; ++r) {
      const Vec minus_m = hn::Set(kReals, state.minus_m[first_row + r]);
      for (std::int32_t key = begin / kLanes * kLanes; key < end; key += kLanes) {
        Real* at = weights + r * kTileKeys + key;
        hn::Store(hn::Add(hn::Load(kReals, at), minus_m), kReals, at);
      }
    }
  }
#endif
  HWY_INLINE void find_exponents() const {
#if HEED_HAS_PAIRS
    if (tile.key.is_columns) return find_exponents<PairColumns>();
    return find_exponents<KeyRows<RealNumbers>>();
#elif HEED_REAL_BITS == 32
    if constexpr (kMayBeHalves) {
      if (tile.key.storage == KvStorage::kFloat16) {
        return find_plain_exponents<HalfNumbers<Float16Format>>();
      }
      if (tile.key.storage == KvStorage::kBFloat16) {
        return find_plain_exponents<HalfNumbers<BFloat16Format>>();
      }
    }
    if constexpr (kMayBeQuantised) {
      if (tile.key.is_quantised()) return find_quantised_exponents();
    }
#endif
#if !HEED_HAS_PAIRS
    find_plain_exponents<LoadedReals>();
#endif
  }

  // Returns the largest exponent of row r, and sets those of keys that the row does not see to
  // −infinity.
  HWY_INLINE Real largest_exponent(int r) const {
    const std::int32_t from = std::max(panel.begin[first_row + r] - tile.first_key, begin);
    const std::int32_t to = std::min(panel.end[first_row + r] - tile.first_key, end);
    Vec largest = hn::Set(kReals, kMinusInfinity);
    for (std::int32_t key = begin / kLanes * kLanes; key < end; key += kLanes) {
      Real* at = weights + r * kTileKeys + key;
      Vec exponent = hn::Load(kReals, at);
      if (key < from || key + kLanes > to) {
        const Vec keys = hn::Iota(kReals, static_cast<Real>(key));
        const auto is_seen = hn::And(hn::Ge(keys, hn::Set(kReals, static_cast<Real>(from))),
                                     hn::Lt(keys, hn::Set(kReals, static_cast<Real>(to))));
        exponent = hn::IfThenElse(is_seen, exponent, hn::Set(kReals, kMinusInfinity));
        hn::Store(exponent, kReals, at);
      }
      largest = hn::Max(exponent, largest);
    }
    return hn::GetLane(hn::MaxOfLanes(kReals, largest));
  }

  // Does the same with scores, which it leaves. Marks a row that has so far seen only scores with
  // which it cannot begin.
  HWY_INLINE Real largest_of_scores(int r) const {
    const std::int32_t row = first_row + r;
    if (options.mask != nullptr) add_mask(r);
    const Real largest_score = largest_exponent(r);
    const Real minus_m = state.minus_m[row];
    const Real largest = hn::GetLane(exponent_of(hn::Set(kReals, largest_score), minus_m));
    if (largest < kLowestStartOf<Real> && largest_score > kMinusInfinity &&
        state.threshold[row] == kMinusInfinity) {
      state.threshold[row] = kBeyondRangeOf<Real>;
    }
    return largest;
  }
  // Turns the scores of row r into exponents, with the m that the lse will be made of.
  HWY_INLINE void turn_into_exponents(int r) const {
    const Real minus_m = state.minus_m[first_row + r];
    for (std::int32_t key = begin / kLanes * kLanes; key < end; key += kLanes) {
      Real* at = weights + r * kTileKeys + key;
      hn::Store(exponent_of(hn::Load(kReals, at), minus_m), kReals, at);
    }
  }
  static HWY_INLINE Vec exponent_of(Vec score, Real minus_m) {
    return hn::MulAdd(score, hn::Set(kReals, Constants<Real>::kLog2E), hn::Set(kReals, minus_m));
  }

  // Adds the mask to the scores of row r. Scores of hidden keys become −infinity whatever they
  // were.
  HWY_INLINE void add_mask(int r) const {
    const std::int32_t width = (panel.num_rows + kLanes - 1) / kLanes * kLanes;
    const Real* HWY_RESTRICT added = options.mask + first_row + r;
    Real* HWY_RESTRICT score = weights + r * kTileKeys;
    for (std::int32_t key = begin; key < end; ++key) {
      const Real element = added[key * width];
      score[key] = element == kMinusInfinity ? element : score[key] + element;
    }
  }

  // Moves m of row r by `largest` if that exceeds the threshold, and returns the distance moved.
  HWY_INLINE Real move(int r, Real largest) const {
    const std::int32_t row = first_row + r;
    const bool is_empty = state.threshold[row] < 0;
    if (!(largest > state.threshold[row]) || (is_empty && largest < kLowestStartOf<Real>)) return 0;
    state.minus_m[row] -= largest;
    state.threshold[row] = kLargestExponent;
    if (is_empty) return largest;
    const Vec factor = exp2(hn::Set(kReals, -largest));
    state.sum[row] *= hn::GetLane(factor);
    Real* out = state.out + row * out_stride(panel);
    for (std::int32_t d = 0; d < panel.value_dim; d += kLanes) {
      hn::Store(hn::Mul(hn::Load(kReals, out + d), factor), kReals, out + d);
    }
    return largest;
  }

  // Turns exponents into weights, and with pairs also stores pairs of the weights of neighbouring
  // keys after all of them.
  HWY_INLINE void weigh(int r, Real shift) const {
    for (std::int32_t key = begin / kLanes * kLanes; key < end; key += kLanes) {
      Real* at = weights + r * kTileKeys + key;
      const Vec exponent = hn::Load(kReals, at);
      Vec weight = exp2(hn::Sub(exponent, hn::Set(kReals, shift)));
      if constexpr (kGuarded) {
        const auto is_hidden = hn::Eq(exponent, hn::Set(kReals, kMinusInfinity));
        weight = hn::IfThenElse(is_hidden, hn::Set(kReals, kUnseen), weight);
      }
      hn::Store(weight, kReals, at);
#if HEED_HAS_PAIRS
      store_neighbours<First::kUpper>(weight, pair_weights(r) + key / 2);
#endif
    }
  }
  HWY_INLINE Real* pair_weights(int r) const {
    return weights + kRows * kTileKeys + r * (kTileKeys / 2);
  }

  // The positions of a group that some row sees, without dividing pairs of keys.
  struct Positions {
    std::int32_t from;
    std::int32_t to;
  };
  HWY_INLINE Positions positions_of(std::int32_t group) const {
    return {std::max(begin - group * kGroupKeys, 0) / kPerElement * kPerElement,
            std::min(end - group * kGroupKeys, kGroupKeys)};
  }

  // sums[row] += the weights of positions of a group, in order: a chain of additions that the
  // processor computes while it adds the group's values.
  HWY_INLINE void add_weights(std::int32_t group, Positions some, Real (&sums)[kRows]) const {
    const Real* HWY_RESTRICT weight = weights + group * kGroupKeys;
    for (std::int32_t j = some.from; j < some.to; ++j) {
      for (int r = 0; r < kRows; ++r) {
        if (kGuarded && weight[r * kTileKeys + j] == kUnseen) continue;
        sums[r] += weight[r * kTileKeys + j];
      }
    }
  }

  // sums[row][v] += Σ weight · value over some positions of a group, for kCount vectors of columns.
  // A single vector may have fewer columns than lanes.
  template <class Values, class Sum, int kCount>
  HWY_INLINE void add_group(std::int32_t group, Positions some, std::int32_t column,
                            Prefetch& fetched, Sum (&sums)[kRows][kCount]) const {
    const Real* HWY_RESTRICT weight =
        (kInPairs ? pair_weights(0) : weights) + group * kGroupKeys / kPerElement;
    constexpr std::int32_t kRowSize = kTileKeys / kPerElement;
    Values values(tile.value, static_cast<std::size_t>(group), some.from, column);
    if constexpr (kInPairs) values.count = tile.num_keys - group * kGroupKeys - some.from;
    const std::int32_t columns = panel.value_dim - column;
    for (std::int32_t j = some.from / kPerElement; j < elements_of(some.to); ++j, values.next()) {
      if constexpr (kRowsInOrder) values.template fetch_ahead<kCount>();
      fetched.step();
      Vec value[kCount];
      if (kCount == 1 && columns < kLanes) {
        value[0] = values.load_some(columns);
      } else {
        load_values(values, value, std::make_integer_sequence<int, kCount>());
      }
      for (int r = 0; r < kRows; ++r) {
        const Vec element = broadcast(weight + r * kRowSize + j);
        for (int v = 0; v < kCount; ++v) {
          sums[r][v] = kGuarded ? add_seen_product(value[v], element, sums[r][v])
                                : add_product(value[v], element, sums[r][v]);
        }
      }
    }
  }

  // Adds the products with the values of kTogether groups, from `group` on, to out[row][column …].
  template <class Values, int kCount>
  HWY_INLINE void add_columns(std::int32_t group, std::int32_t column, Prefetch& fetched) const {
    Real* out = state.out + first_row * out_stride(panel) + column;
    Vec sums[kRows][kCount];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kCount; ++v) {
        sums[r][v] = hn::Load(kReals, out + r * out_stride(panel) + v * kLanes);
      }
    }
#if HEED_HAS_TILES
    TileChain chains[kRows][kCount];
    for (auto& of_row : chains) std::fill_n(of_row, kCount, TileChain::empty());
    for (std::int32_t i = group; i < group + kTogether && i * kGroupKeys < end; ++i) {
      add_group<Values>(i, positions_of(i), column, fetched, chains);
    }
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kCount; ++v) sums[r][v] = chains[r][v].total(sums[r][v]);
    }
#else
    add_group<Values>(group, positions_of(group), column, fetched, sums);
#endif
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kCount; ++v) {
        hn::Store(sums[r][v], kReals, out + r * out_stride(panel) + v * kLanes);
      }
    }
  }
  template <class Values, int kCount, int... kVector>
  static HWY_INLINE void load_values(const Values& values, Vec (&value)[kCount],
                                     std::integer_sequence<int, kVector...>) {
    ((value[kVector] = values.template load<kVector>()), ...);
  }

  // The number of vectors of columns that are added at once from `column` on.
  HWY_INLINE std::int32_t vectors_at(std::int32_t column) const {
    const std::int32_t left = (panel.value_dim - column) / kLanes;
    return left >= kMostValueVectors ? kMostValueVectors : left >= kVectors ? kVectors : 1;
  }
  HWY_INLINE std::int64_t passes() const {
    std::int64_t count = 0;
    for (std::int32_t column = 0; column < panel.value_dim; ++count) {
      column += vectors_at(column) * kLanes;
    }
    return count;
  }

  // Adds the values group by group, so that they are read nearly in the order of memory, and come
  // from the nearest cache where they need more than one pass.
  template <class Values>
  HWY_INLINE void add_groups() const {
    Prefetch fetched = fetch_beside_values(std::int64_t{elements_of(end - begin)} * passes());
    Real sums[kRows] = {};
    std::int32_t group = begin / kGroupKeys / kTogether * kTogether;
    for (; group * kGroupKeys < end; group += kTogether) {
      for (std::int32_t i = group; i < group + kTogether; ++i) {
        add_weights(i, positions_of(i), sums);
      }
      for (std::int32_t column = 0; column < panel.value_dim;) {
        const std::int32_t count = vectors_at(column);
        if (kMostValueVectors > kVectors && count == kMostValueVectors) {
          add_columns<Values, kMostValueVectors>(group, column, fetched);
        } else if (count == kVectors) {
          add_columns<Values, kVectors>(group, column, fetched);
        } else {
          add_columns<Values, 1>(group, column, fetched);
        }
        column += count * kLanes;
      }
    }
    for (int r = 0; r < kRows; ++r) state.sum[first_row + r] += sums[r];
  }

#if HEED_REAL_BITS == 32 && !HEED_HAS_PAIRS
  // Does the same for quantised values.
  HWY_INLINE void add_quantised_values() const {
    const TileSide values = values_of(tile);
    const bool fetches = !kInOrder && next != nullptr;
    const TileSide keys = keys_of(fetches ? *next : tile);
    panel.integers->add_values(
        {values, panel.value_dim, begin, end, fetches ? &keys : nullptr,
         kInOrder && fetches_stretch(values, options.stretches)},
        weights, kRows,
        {state.sum + first_row, state.out + std::int64_t{first_row} * out_stride(panel),
         out_stride(panel)});
  }
#endif
  HWY_INLINE void add_values() const {
#if HEED_HAS_PAIRS
    return add_groups<PairValues>();
#elif HEED_REAL_BITS == 32
    if constexpr (kMayBeHalves) {
      if (tile.value.storage == KvStorage::kFloat16) {
        return add_groups<PlainValues<HalfNumbers<Float16Format>>>();
      }
      if (tile.value.storage == KvStorage::kBFloat16) {
        return add_groups<PlainValues<HalfNumbers<BFloat16Format>>>();
      }
    }
    if constexpr (kMayBeQuantised) {
      if (tile.value.is_quantised()) return add_quantised_values();
    }
#endif
#if !HEED_HAS_PAIRS
    add_groups<PlainValues<LoadedReals>>();
#endif
  }
};

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_ROWS_INL_H_
