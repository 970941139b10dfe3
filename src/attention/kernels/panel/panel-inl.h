// The products of a panel with a tile of keys, compiled once for each instruction set.
#if defined(HEED_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_PANEL_INL_H_
#undef HEED_PANEL_INL_H_
#else
#define HEED_PANEL_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "attention/kernels/integers/quantised_panel-inl.h"
#include "attention/kernels/kernels.h"
#include "attention/kernels/types-inl.h"
#include "hwy/highway.h"
#include "simd/register_block-inl.h"
#if HEED_HAS_TILES
#include "attention/kernels/amx/tiles-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

constexpr Real kMinusInfinity = -std::numeric_limits<Real>::infinity();

// The number of keys to whose multiples segments are rounded where rows see different keys.
constexpr std::int32_t kSegmentKeys = kInTiles ? kKeysTogether : kRegisterRows;

template <int kVectors>
struct PanelKernel;

#if HEED_HAS_TILES
// These are in tile_products-inl.h.
template <int kVectors, class Use>
struct TileScores;
template <int kVectors>
void add_values_in_tiles(const PanelKernel<kVectors>& kernel,
                         const typename PanelKernel<kVectors>::OverKeys& operands,
                         std::int32_t columns, Real* sums);
template <Counted kCounted, int kVectors>
void add_counted_values(const PanelKernel<kVectors>& kernel,
                        const typename PanelKernel<kVectors>::OverKeys& operands,
                        std::int32_t columns, Real* sums);
#endif

template <int kVectors>
struct PanelKernel {
  static constexpr int kWidth = kVectors * kLanes;

  const Tile& tile;
  const Panel& panel;
  Real* HWY_RESTRICT weights;  // [kTileKeys][kWidth]
  // The range of keys of the tile that any row sees, and true if some row does not see all of
  // these. As kKeysTogether keys are not divided, the first keys of the range may not be seen by
  // any row.
  std::int32_t begin;
  std::int32_t end;
  bool is_mixed;
  // These keys in segments, each seen by different vectors of rows. There are no more segments than
  // beginnings and ends of the ranges of vectors.
  std::int32_t num_segments = 1;
  Segment segments[2 * kVectors + 1];
  // The number of rows to fetch that are fetched during the product of scores; the others are
  // fetched during that of values. Then the number for each register block of either.
  std::int32_t fetched_with_scores;
  std::int32_t fetched_per_scores = 0;
  std::int32_t fetched_per_values = 0;
  // The rows' ranges, counted from the tile's first key; used only if is_mixed.
  Vec row_begin[kVectors];
  Vec row_end[kVectors];

  HWY_INLINE PanelKernel(const Tile& t, const Panel& p, Real* w)
      : PanelKernel(t, p, w, t.fetched.count) {}

  HWY_INLINE PanelKernel(const Tile& t, const Panel& p, Real* w, std::int32_t with_scores)
      : tile(t), panel(p), weights(w), fetched_with_scores(with_scores) {
    begin = std::max(panel.any_begin - tile.first_key, 0) / kKeysTogether * kKeysTogether;
    end = std::min(panel.any_end - tile.first_key, tile.num_keys);
    is_mixed = panel.all_begin > tile.first_key + begin || panel.all_end < tile.first_key + end;
    segments[0] = {begin, end, 0, kVectors};
    if (is_mixed) find_segments();
    if (tile.fetched.count > 0 && begin < end) {
      const auto per_block = [](std::int32_t rows, std::int32_t of) {
        const std::int32_t blocks = std::max((of + kRegisterRows - 1) / kRegisterRows, 1);
        return (rows + blocks - 1) / blocks;
      };
      fetched_per_scores = per_block(with_scores, end - begin);
      fetched_per_values = per_block(tile.fetched.count - with_scores, panel.value_dim);
    }
    for (int v = 0; v < kVectors; ++v) {
      row_begin[v] = is_mixed ? relative(panel.begin + v * kLanes) : hn::Zero(kReals);
      row_end[v] = is_mixed ? relative(panel.end + v * kLanes) : hn::Zero(kReals);
    }
  }

  // Divides the keys where the range of a vector of rows begins or ends, rounded to kSegmentKeys.
  HWY_INLINE void find_segments() {
    std::int32_t vector_begin[kVectors];
    std::int32_t vector_end[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const std::int32_t from = std::max(panel.vector_begin[v] - tile.first_key - begin, 0);
      const std::int32_t to = panel.vector_end[v] - tile.first_key - begin + kSegmentKeys - 1;
      vector_begin[v] = begin + from / kSegmentKeys * kSegmentKeys;
      vector_end[v] = std::min(begin + to / kSegmentKeys * kSegmentKeys, end);
    }
    num_segments = 0;
    for (std::int32_t key = begin; key < end;) {
      Segment segment{key, end, kVectors, 0};
      std::int32_t last = -1;
      for (int v = 0; v < kVectors; ++v) {
        if (vector_begin[v] > key) {
          segment.end = std::min(segment.end, vector_begin[v]);
        } else if (vector_end[v] > key) {
          segment.end = std::min(segment.end, vector_end[v]);
          segment.first_vector = std::min(segment.first_vector, v);
          last = v;
        }
      }
      key = segment.end;
      segment.num_vectors = last + 1 - segment.first_vector;
      if (last >= 0) segments[num_segments++] = segment;
    }
  }

  // Positions relative to the tile as floats, whose comparison is fastest. Clamping keeps them
  // exact.
  HWY_INLINE Vec relative(const std::int32_t* positions) const {
    const Indices integers;
    const auto difference =
        hn::Sub(hn::LoadU(integers, positions), hn::Set(integers, tile.first_key));
    return to_reals(
        hn::Min(hn::Max(difference, hn::Set(integers, -1)), hn::Set(integers, kTileKeys + 1)));
  }

  HWY_INLINE hn::Mask<Reals> sees(int v, std::int32_t key) const {
    const Vec at = hn::Set(kReals, static_cast<Real>(key));
    return hn::And(hn::Ge(at, row_begin[v]), hn::Lt(at, row_end[v]));
  }

  // Replaces the numbers of the tile for the keys first ≤ key < last by the results of
  // use.finish().
  template <int kFirst, int kCount, class Use>
  HWY_INLINE void finish(std::int32_t first, std::int32_t last, Use& use) const {
    if (is_mixed) {
      finish_rows<true, kFirst, kCount>(first, last, use);
    } else {
      finish_rows<false, kFirst, kCount>(first, last, use);
    }
  }

  template <class Use>
  struct FinishSegment {
    const PanelKernel& kernel;
    Use& use;

    template <int kFirst, int kCount>
    HWY_INLINE void run(const Segment& segment) const {
      kernel.template finish<kFirst, kCount>(segment.begin, segment.end, use);
    }
  };

  // Does so for all keys that some row sees.
  template <class Use>
  HWY_INLINE void finish(Use& use) const {
    for (std::int32_t i = 0; i < num_segments; ++i) {
      with_vectors<kVectors>(segments[i], FinishSegment<Use>{*this, use});
    }
  }

  // Not inlined, and with a copy of `use`, so that its members stay in registers.
  template <bool kMixed, int kFirst, int kCount, class Use>
  HWY_NOINLINE void finish_rows(std::int32_t first, std::int32_t last, Use& use) const {
    Use finisher = use;
    Real* HWY_RESTRICT row = weights + first * kWidth;
    for (std::int32_t key = first; key < last; ++key, row += kWidth) {
      HEED_UNROLL for (int v = kFirst; v < kFirst + kCount; ++v) {
        store(finisher.template finish<kMixed>(v, key, load(row, v)), row, v);
      }
    }
    use = finisher;
  }

#if HEED_HAS_TILES
  // Does so for the keys whose numbers are at `numbers`, in pairs: the pair of keys 2i and 2i + 1
  // goes to row i of the tile. `first` is even.
  template <int kFirst, int kCount, class Use>
  HWY_INLINE void finish_pairs(const Real* numbers, std::int32_t first, std::int32_t last,
                               Use& use) const {
    if (is_mixed) {
      finish_pairs_of_rows<true, kFirst, kCount>(numbers, first, last, use);
    } else {
      finish_pairs_of_rows<false, kFirst, kCount>(numbers, first, last, use);
    }
  }

  template <bool kMixed, int kFirst, int kCount, class Use>
  HWY_NOINLINE void finish_pairs_of_rows(const Real* row, std::int32_t first, std::int32_t last,
                                         Use& use) const {
    Use finisher = use;
    Real* pairs = weights + first / 2 * kWidth;
    std::int32_t key = first;
    for (; key + 1 < last; key += 2, row += 2 * kWidth, pairs += kWidth) {
      HEED_UNROLL for (int v = kFirst; v < kFirst + kCount; ++v) {
        const Vec upper = finisher.template finish<kMixed>(v, key, load(row, v));
        const Vec lower = finisher.template finish<kMixed>(v, key + 1, load(row + kWidth, v));
        store(pair_of(upper, lower), pairs, v);
      }
    }
    if (key < last) {
      HEED_UNROLL for (int v = kFirst; v < kFirst + kCount; ++v) {
        const Vec upper = finisher.template finish<kMixed>(v, key, load(row, v));
        store(pair_of(upper, hn::Zero(kReals)), pairs, v);
      }
    }
    use = finisher;
  }

  template <class Use>
  struct FinishPairsOfSegment {
    const PanelKernel& kernel;
    Use& use;

    template <int kFirst, int kCount>
    HWY_INLINE void run(const Segment& segment) const {
      kernel.template finish_pairs<kFirst, kCount>(kernel.weights + segment.begin * kWidth,
                                                   segment.begin, segment.end, use);
    }
  };

  // Does so for all keys that some row sees, in place.
  template <class Use>
  HWY_INLINE void finish_in_pairs(Use& use) const {
    for (std::int32_t i = 0; i < num_segments; ++i) {
      with_vectors<kVectors>(segments[i], FinishPairsOfSegment<Use>{*this, use});
    }
  }
#else
  template <class Use>
  static HWY_INLINE void finish_in_pairs(Use&) {}
#endif

  // Fetch the rows that belong to the register block of scores that begins with a key, or to that
  // of values that begins with a column.
  HWY_INLINE void fetch_with_scores(std::int32_t key) const {
    if (fetched_per_scores == 0 || (key - begin) % kRegisterRows != 0) return;
    const std::int32_t first = (key - begin) / kRegisterRows * fetched_per_scores;
    fetch(first, std::min(first + fetched_per_scores, fetched_with_scores));
  }
  HWY_INLINE void fetch_with_values(std::int32_t column) const {
    if (fetched_per_values == 0 || column % kRegisterRows != 0) return;
    const std::int32_t first = fetched_with_scores + column / kRegisterRows * fetched_per_values;
    fetch(first, std::min(first + fetched_per_values, tile.fetched.count));
  }

  HWY_INLINE void fetch(std::int32_t first, std::int32_t last) const {
    const FetchedRows& fetched = tile.fetched;
    for (std::int32_t row = first; row < last; ++row) {
      for (std::int32_t at = 0; at < fetched.bytes; at += FetchedRows::kLine) {
        __builtin_prefetch(fetched.rows[row] + at, 0, 2);
      }
    }
  }

#if HEED_HAS_TILES
  template <class Use>
  using ScoreSegment = TileScores<kVectors, Use>;
#else
  template <class Use, int kFirst, int kCount>
  struct ScoreRegisterBlock {
    const PanelKernel& kernel;
    Use& use;

    // Computes the scores of kRows keys from `key` on; sums start with use.start().
    template <int kRows>
    HWY_INLINE void run(std::int32_t key) const {
      const Operand keys{kernel.tile.key + key * kernel.tile.key_stride, kernel.tile.key_stride, 1};
      multiply_block<kRows, kVectors, kFirst, kCount>(
          keys, kernel.panel.query, elements_of(kernel.panel.head_dim),
          {use.start(), 0, kernel.weights + key * kWidth, kWidth});
      kernel.fetch_with_scores(key);
      if constexpr (Use::kFinishes) {
        kernel.template finish<kFirst, kCount>(key, key + kRows, use);
      }
    }
  };

  template <class Use>
  struct ScoreSegment {
    const PanelKernel& kernel;
    Use& use;

    template <int kFirst, int kCount>
    HWY_INLINE void run(const Segment& segment) const {
      for_each_register_block(segment.begin, segment.end,
                              ScoreRegisterBlock<Use, kFirst, kCount>{kernel, use});
    }
  };
#endif

  template <class Use>
  HWY_INLINE void score(Use& use) const {
    if (has_quantised_keys()) return score_quantised(use);
    for (std::int32_t i = 0; i < num_segments; ++i) {
      with_vectors<kVectors>(segments[i], ScoreSegment<Use>{*this, use});
    }
  }

  // Computes the scores of all rows for all keys that any row sees.
  template <class Use>
  HWY_INLINE void score_whole(Use& use) const {
    ScoreSegment<Use>{*this, use}.template run<0, kVectors>({begin, end, 0, kVectors});
  }

  static HWY_INLINE Vec load(const Real* array, int v) {
    return hn::Load(kReals, array + v * kLanes);
  }
  static HWY_INLINE void store(Vec x, Real* array, int v) {
    hn::Store(x, kReals, array + v * kLanes);
  }

  // Calls use(v, key, at) for the vectors of the tile in which some row sees the key; `at` points
  // to the vector.
  template <class Use>
  struct VisitSegment {
    const PanelKernel& kernel;
    const Use& use;

    template <int kFirst, int kCount>
    HWY_INLINE void run(const Segment& segment) const {
      for (std::int32_t key = segment.begin; key < segment.end; ++key) {
        Real* row = kernel.weights + key * kWidth;
        for (int v = kFirst; v < kFirst + kCount; ++v) use(v, key, row + v * kLanes);
      }
    }
  };

  template <class Use>
  HWY_INLINE void visit(const Use& use) const {
    for (std::int32_t i = 0; i < num_segments; ++i) {
      with_vectors<kVectors>(segments[i], VisitSegment<Use>{*this, use});
    }
  }

  // Replaces the numbers of the tile where the row does not see the key.
  HWY_INLINE void replace_unseen(Real replacement) const {
    visit([&](int v, std::int32_t key, Real* at) HWY_ATTR {
      const Vec seen = hn::Load(kReals, at);
      hn::Store(hn::IfThenElse(sees(v, key), seen, hn::Set(kReals, replacement)), kReals, at);
    });
  }

  // The operands of sums over keys, in elements of keys.
  struct OverKeys {
    const Real* values;  // [elements][stride]
    std::int64_t stride;
    const Real* weights;  // [elements][kWidth]
  };

  // `pairs` has room for the weights in pairs, [kTileKeys / 2][kWidth], and may be the array of
  // weights itself. `missing` is the weight that completes the last pair. are_pairs is true if the
  // weights are pairs already.
  HWY_INLINE OverKeys over_keys([[maybe_unused]] Real missing, [[maybe_unused]] Real* pairs,
                                [[maybe_unused]] bool are_pairs = false) const {
#if HEED_HAS_PAIRS
    const std::int64_t first = begin / 2 * kWidth;
    if (!are_pairs) {
      pair_rows<First::kUpper>(weights + 2 * first, end - begin, kWidth, missing, pairs + first);
    }
    // Fills the last AMX tile.
    for (std::int32_t pair = (end + 1) / 2; pair % (kKeysTogether / 2) != 0; ++pair) {
      const Vec nothing = hn::Set(kReals, missing);
      for (int v = 0; v < kVectors; ++v) store(pair_of(nothing, nothing), pairs + pair * kWidth, v);
    }
    return {tile.pairs, tile.pair_stride, pairs};
#else
    return {tile.value, tile.value_stride, weights};
#endif
  }

  template <bool kGuarded, int kRows>
  struct ValueSegment {
    const OverKeys& operands;
    std::int32_t column;  // the first column of the register block
    Real* sums;           // of the register block

    template <int kFirst, int kCount>
    HWY_INLINE void run(const Segment& segment) const {
      const std::int32_t first = segment.begin / kPerElement;
      const std::int64_t stride = operands.stride;
      multiply_block<kRows, kVectors, kFirst, kCount, kGuarded>(
          {operands.values + first * stride + column, 1, stride}, operands.weights + first * kWidth,
          elements_of(segment.end) - first, {sums, kWidth, sums, kWidth});
    }
  };

  template <bool kGuarded>
  struct ValueRegisterBlock {
    const PanelKernel& kernel;
    const OverKeys& operands;
    Real* all_sums;

    template <int kRows>
    HWY_INLINE void run(std::int32_t column) const {
      const ValueSegment<kGuarded, kRows> add{operands, column, all_sums + column * kWidth};
      for (std::int32_t i = 0; i < kernel.num_segments; ++i) {
        with_vectors<kVectors>(kernel.segments[i], add);
      }
      kernel.fetch_with_values(column);
    }
  };

  // sums[column][row] += Σ_key weight · value[key][column] for `columns` columns.
  template <bool kGuarded>
  HWY_INLINE void add_values(const OverKeys& operands, std::int32_t columns, Real* sums) const {
#if HEED_HAS_TILES
    if (!kGuarded) return add_values_in_tiles(*this, operands, columns, sums);
    add_counted_values<Counted::kOfSeen>(*this, operands, columns, sums);
#else
    for_each_register_block(0, columns, ValueRegisterBlock<kGuarded>{*this, operands, sums});
#endif
  }

#if HEED_REAL_BITS == 32 && !HEED_HAS_PAIRS
  HWY_INLINE bool has_quantised_keys() const {
    return tile.stored != nullptr && tile.stored->key.is_quantised();
  }
  HWY_INLINE bool has_quantised_values() const {
    return tile.stored != nullptr && tile.stored->value.is_quantised();
  }

  // score() for quantised keys, with the same products as in decode.
  template <class Use>
  HWY_INLINE void score_quantised(Use& use) const {
    multiply_quantised_keys(tile, panel, begin, end, kWidth, weights);
    visit([&](int v, std::int32_t key, Real* at) HWY_ATTR {
      Vec x = hn::Add(hn::Load(kReals, at), load(use.start(), v));
      if constexpr (Use::kFinishes) {
        x = is_mixed ? use.template finish<true>(v, key, x) : use.template finish<false>(v, key, x);
      }
      hn::Store(x, kReals, at);
    });
  }

  // add_values() for quantised values.
  HWY_INLINE void add_quantised_values(Real* sums) const {
    kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE::add_quantised_values(tile, panel, begin, end,
                                                                      weights, sums);
  }
#else
  static constexpr bool has_quantised_keys() { return false; }
  static constexpr bool has_quantised_values() { return false; }
  template <class Use>
  static HWY_INLINE void score_quantised(Use&) {}
  static HWY_INLINE void add_quantised_values(Real*) {}
#endif

  // Products of query and key in natural units.
  struct RawScores {
    static constexpr bool kFinishes = kInPairs;
    static constexpr bool kMakesPairs = false;
    Real scale;
    HWY_INLINE const Real* start() const { return kZeros; }
    template <bool kMixed>
    HWY_INLINE Vec finish(int, std::int32_t, Vec product) const {
      return hn::Mul(product, hn::Set(kReals, scale));
    }
  };

  HWY_INLINE void raw_scores() const {
    RawScores use{panel.scale};
    if (begin < end) score(use);
  }

  // Turns a product of query and key into an exponent x = s − m: −m is the start of the sum, or is
  // added afterwards if the query could not be multiplied by its scale before.
  static const Real* start_of_exponent(const Real* minus_m) { return kInPairs ? kZeros : minus_m; }
  HWY_INLINE Vec exponent_of(Vec product, const Real* minus_m, int v) const {
    if (!kInPairs) return product;
    return hn::MulAdd(product, hn::Set(kReals, panel.scale), load(minus_m, v));
  }
};

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_PANEL_INL_H_
