// The arguments of the kernels for panels, and the table of kernels of an instruction set: one for
// float, and one for double with half as many lanes.
//
// A panel is a set of rows, one for each lane of its vectors; a row is a query of one of the heads
// that share a key head. Arrays of a panel are [index][width], so that a vector holds the same
// index of several rows. Rows that are too few to fill vectors are a *decode panel* (few_rows
// in names), which has another layout; only attend_rows, is_finite, merge, pack and unpack_rows
// take it. docs/kernels.md explains the arithmetic and its order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "attention/kernels/score_loops.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "simd/processor.h"
#include "simd/shapes.h"

namespace heed { inline namespace v0 { namespace kernels {

// The largest head_dim and value_dim.
inline constexpr std::int64_t kMaxDim = 65536;

// The lowest score, in units of log 2, with which a row begins: −2¹⁸ for float, −2⁴⁷ for double.
// Relative to a lower offset m, a score would have fewer than six fractional bits and its weight an
// error of more than 1 %. Rows skip such scores, as a mask of −1e9 makes them, and begin with the
// first larger one.
template <class Real>
inline constexpr Real kLowestStartOf =
    -static_cast<Real>(std::int64_t{1} << (std::numeric_limits<Real>::digits - 6));
inline constexpr float kLowestStart = kLowestStartOf<float>;

// The threshold of a row that has seen finite scores, but none with which it begins.
template <class Real>
inline constexpr Real kBeyondRangeOf = -std::numeric_limits<Real>::max();
inline constexpr float kBeyondRange = kBeyondRangeOf<float>;

struct StoredTile;    // in stored_tile.h
struct IntegerTable;  // in integers.h

// Rows of memory, of at most `bytes` bytes each, that are read soon: kernels fetch them into the
// second-level cache between products.
struct FetchedRows {
  static constexpr std::int32_t kLine = 64;  // the number of bytes fetched at a time
  const std::byte* const* rows = nullptr;
  std::int32_t count = 0;
  std::int32_t bytes = 0;
};

// Up to kTileKeys neighbouring keys and their values, as rows of numbers.
template <class Real>
struct BasicTile {
  const Real* key = nullptr;  // row j is at key + j · key_stride
  std::int64_t key_stride = 0;
  const Real* value = nullptr;
  std::int64_t value_stride = 0;
  std::int32_t first_key = 0;  // the position of row 0 in the sequence
  std::int32_t num_keys = 0;
  // With products of bfloat16 in pairs, the rows above consist of pairs of neighbouring numbers,
  // the last one padded with 0. `pairs` are then the pairs of rows 2i and 2i + 1 of the tensor that
  // is summed over keys, number by number: of values in the forward pass, of keys in the backward
  // pass.
  const Real* pairs = nullptr;
  std::int64_t pair_stride = 0;
  // The tile as a cache stores it, if keys or values are quantised: these are then read from
  // here. Otherwise null.
  const StoredTile* stored = nullptr;
  FetchedRows fetched = {};
};

// The dropout of a panel's rows; core/philox.h has the random numbers.
template <class Real>
struct BasicDropoutRows {
  std::array<std::array<std::uint64_t, 2>, 10> round_keys{};
  std::uint32_t threshold = 0;  // of 2¹⁶
  Real kept_factor = 1;
  std::uint32_t batch = 0;
  const std::int32_t* heads = nullptr;  // [width], the head of each row
  const std::int32_t* q_idx = nullptr;  // [width], positions
};

// The value of `vectors` for a decode panel. Its query is [head_dim][num_rows], and the output of
// its state [num_rows][value_dim, rounded up to whole vectors]. Its other arrays are [num_rows],
// and those of its state are rounded up to whole vectors.
inline constexpr std::int32_t kFewRows = 0;

// The largest number of rows of a decode panel that reads tensors. Panels that read the pages of a
// cache may have more.
inline constexpr std::int32_t kMostFewRows = 12;

// The rows of a panel: their queries, and the keys that they see.
template <class Real>
struct BasicPanel {
  std::int32_t vectors = kFewRows;  // 1, 2 or 3: width / lanes of a vector; or kFewRows
  std::int32_t num_rows = 0;  // the number of rows, where it is used: decode, or quantised keys
  std::int32_t head_dim = 0;
  std::int32_t value_dim = 0;
  const Real* query = nullptr;  // [head_dim][width]; in pairs [⌈head_dim / 2⌉][width]
  Real scale = 1;               // of query · key, if the query is in pairs
  // The kernels for quantised keys and values, in float only, and the query in the form that they
  // read, QueryDigits; null if keys are not quantised.
  const IntegerTable* integers = nullptr;
  std::byte* digits = nullptr;
  // Row r sees no key outside begin[r] ≤ k < end[r]; the range of a row that does not exist is
  // empty.
  const std::int32_t* begin = nullptr;
  const std::int32_t* end = nullptr;
  // The union and the intersection of the ranges of the rows that exist.
  std::int32_t any_begin = 0, any_end = 0;
  std::int32_t all_begin = 0, all_end = 0;
  // The union of the ranges of the rows of each vector.
  std::int32_t vector_begin[kPanelVectors] = {};
  std::int32_t vector_end[kPanelVectors] = {};

  bool has_few_rows() const { return vectors == kFewRows; }
};

// The options of the computation of a panel.
template <class Real>
struct BasicPanelOptions {
  // True if values are multiplied only by the weights of keys that are seen. This is slower, and
  // needed only if a hidden value is not finite.
  bool guarded = false;
  // For decode only: the way of reading consecutive keys and values in memory.
  Stretches stretches = Stretches::kGroupsInTurn;
  // Null if no weight is dropped.
  const BasicDropoutRows<Real>* dropout = nullptr;
  // For decode only, instead of score(), add_mask() and absorb(): the query is multiplied by scale,
  // and unless `mask` is null it is added to the scores of the tile, [key][rows, rounded up to
  // whole vectors]. Tiles are then given one at a time.
  bool has_mask = false;
  const Real* mask = nullptr;
};

// The softmax of a panel's rows over some keys, with scores s in units of log 2: sum = Σ 2^(s − m)
// and out = Σ 2^(s − m) · value. The threshold is −infinity for a row without keys, and
// kBeyondRange for one without a score with which it could begin; its other numbers are 0 in both
// cases.
template <class Real>
struct BasicPanelState {
  Real* minus_m = nullptr;    // [width]
  Real* threshold = nullptr;  // [width]: m is moved when an exponent s − m exceeds it
  Real* sum = nullptr;        // [width]
  Real* out = nullptr;        // [value_dim][width]
  // True if the last tile moved an m that was set before. The next tile is then expected to do so
  // too, which affects speed only.
  bool moving = false;
};

// The weights of a panel's rows for a tile of keys, [key][width].
template <class Real>
struct BasicWeightTile {
  std::int32_t vectors = 0;
  std::int32_t first_key = 0;  // the position of key 0 of the tile in the sequence
  // The range of keys that some row sees, counted from first_key; only these have weights.
  std::int32_t begin = 0, end = 0;
  Real* weights = nullptr;       // 0 where the row does not see the key
  Real* log2_weights = nullptr;  // −infinity where the row does not see the key
};

// The denominators of a panel's rows over the keys so far, Σ exp(score − largest). A row that has
// seen no key has largest = −infinity and sum = 0.
template <class Real>
struct BasicPanelSums {
  Real* largest = nullptr;  // [width]
  Real* sum = nullptr;      // [width]
};

// The logarithms of the denominators of a panel's rows in units of log 2, as a number and its
// rounding error. −infinity for a row that sees no key.
template <class Real>
struct BasicPanelLogSums {
  const Real* high = nullptr;       // [width]
  const Real* minus_low = nullptr;  // [width], negated
};

// The largest weights of each row so far, in falling order, and their keys.
template <class Real>
struct BasicPanelLargest {
  std::int32_t count = 0;
  Real* weights = nullptr;       // [count][width]; 0 in places not used yet
  std::int32_t* keys = nullptr;  // [count][width]; −1 in places not used yet
};

template <class Real>
struct BasicBackwardTable;
struct RecurrenceTable;

// The kernels of one instruction set. `weights` is scratch memory, [kTileKeys][width].
template <class Real>
struct BasicKernelTable {
  using Tile = BasicTile<Real>;
  using ScoreTile = BasicScoreTile<Real>;
  using WeightTile = BasicWeightTile<Real>;
  using Panel = BasicPanel<Real>;
  using PanelOptions = BasicPanelOptions<Real>;
  using PanelState = BasicPanelState<Real>;
  using PanelSums = BasicPanelSums<Real>;
  using PanelLogSums = BasicPanelLogSums<Real>;
  using PanelLargest = BasicPanelLargest<Real>;

  const char* name;
  const char* vectors;  // the instruction set of the vectors: the name without the one for pairs
  std::int32_t lanes;
  // The instruction set for loops that call a user's function, which are compiled elsewhere.
  detail::TileTarget tile_target;
  // The loops over scores that terms and masks use.
  BasicScoreLoops<Real> loops;
  // The kernels of the backward pass: backward.h.
  const BasicBackwardTable<Real>* backward;
  // The kernels for quantised keys and values: integers.h. In float only.
  const IntegerTable* integers;
  // The kernels of linear attention: recurrence.h. In float only.
  const RecurrenceTable* recurrence;
  // The kernels for double; null in the table for double.
  const BasicKernelTable<double>* in_double;
  // The kernels with products of bfloat16 in pairs, or null if the processor has none. In that
  // table `in_numbers` is this table; otherwise it is null.
  const BasicKernelTable<Real>* in_pairs;
  const BasicKernelTable<Real>* in_numbers;
  // The number of keys whose products are added to each other before they are added to a sum, so
  // that bits depend on the positions of keys: 1 if there is no such sum, 2 for some pairs, more
  // for AMX tiles.
  std::int32_t keys_together;

  bool multiplies_pairs() const { return in_numbers != nullptr; }
  bool multiplies_tiles() const { return keys_together > 2; }

  // Sets up and releases the state that kernels need. Each kernel does so by itself, unless the
  // calling thread has called begin() and not yet end(). Null if there is no such state.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;

  // Adds one tile of keys to the state. The query must be multiplied by scale · log2 e.
  void (*attend)(const Tile& tile, const Panel& panel, const PanelOptions& options,
                 PanelState& state, Real* weights);

  // Adds several tiles of a chunk to the state of a decode panel without dropout; keys and values
  // are read as they are stored. In the table for double, KvStorage::kFloat32 stands for doubles
  // and is the only storage. `next` is the tile that follows, whose keys are fetched in the
  // meantime, or null. `weights` is [num_rows][kTileKeys].
  void (*attend_rows)(std::span<const StoredTile> tiles, const StoredTile* next, const Panel& panel,
                      const PanelOptions& options, PanelState& state, Real* weights);

  // The two halves of attend(), for scores that are modified in between. The query must be
  // multiplied by scale alone. score() sets scores[j][r] to query · key, or to any number if row r
  // does not see key j; before absorb(), scores that an irregular mask hides must be −infinity.
  void (*score)(const Tile& tile, const Panel& panel, Real* scores);
  void (*absorb)(const Tile& tile, const Panel& panel, const PanelOptions& options,
                 PanelState& state, Real* scores);

  // Sets the weights that absorb() computed to 0 where row r does not see key j.
  void (*clear_unseen)(const Tile& tile, const Panel& panel, Real* weights);

  // Sets the score of key j and row r to −infinity where bit r of seen[j] is 0.
  void (*hide)(const ScoreTile& tile, const std::uint64_t* seen);

  // Adds the mask to scores. Scores of hidden keys become −infinity whatever they were.
  void (*add_mask)(const ScoreTile& tile, const Real* mask);

  // Adds a tile of scores computed by score() to the denominators, and sets those of keys that a
  // row does not see to −infinity.
  void (*add_to_sums)(const Tile& tile, const Panel& panel, Real* scores, const PanelSums& sums);

  // Turns the scores in out.log2_weights into weights, which are at most 1, and exactly 0 if below
  // 2⁻¹⁰⁰, and their logarithms.
  void (*weigh)(const Tile& tile, const Panel& panel, const PanelLogSums& sums,
                const WeightTile& out);

  // sums[r] += Σ weight · log2 weight over the tile.
  void (*add_entropy)(const WeightTile& tile, Real* sums);

  // Merges the weights of the tile into the largest. Equal weights stay in the order of keys; NaN
  // is never among the largest.
  void (*keep_largest)(const WeightTile& tile, const PanelLargest& largest);

  // mass[j] += Σ_r weights[j][r], added in the order of the rows r of a part.
  void (*add_mass)(const WeightTile& tile, PanelPart part, Real* mass);

  // counts[r] += the number of scores of the tile that are not −infinity.
  void (*count_seen)(const ScoreTile& tile, Real* counts);

  // sums[r] += Σ a · b over the keys of both tiles, which have the same keys and width.
  void (*add_products)(const WeightTile& a, const WeightTile& b, Real* sums);

  // query[d][r] = factor · rows[r][d]; 0 for rows that do not exist (null).
  void (*pack)(const Real* const* rows, std::int32_t width, std::int32_t head_dim, Real factor,
               Real* query);

  // For products of bfloat16 in pairs; null otherwise. query[i][r] = the numbers 2i and 2i + 1 of
  // rows[r], which has head_dim bfloat16; 0 beyond its end, and for rows that do not exist (null).
  void (*pack_pairs)(const Real* const* rows, std::int32_t width, std::int32_t head_dim,
                     Real* query);
  // Turns numbers of a panel of whole vectors, [dim][width], which are bfloat16, into such pairs.
  void (*pair_panel)(Real* numbers, std::int32_t dim, std::int32_t width);
  // pairs[i][d] = the numbers d of rows 2i and 2i + 1, for `count` rows of bfloat16; a missing row
  // is 0. For AMX tiles it is pairs[d][i], padded to whole tiles. Returns the stride of the first
  // index.
  std::int64_t (*pair_keys)(const Real* rows, std::int64_t stride, std::int32_t count,
                            std::int32_t dim, Real* pairs);

  // rows[r][d] = factors[r] · out[d][r], for the rows that exist; never −0.
  void (*unpack)(const Real* out, std::int32_t width, std::int32_t value_dim, const Real* factors,
                 Real* const* rows);

  // unpack() for a decode panel, in the layout of its state.
  void (*unpack_rows)(const Real* out, std::int32_t num_rows, std::int32_t value_dim,
                      const Real* factors, Real* const* rows);

  // True if the sum and the output of every row are finite.
  bool (*is_finite)(const Panel& panel, const PanelState& state);

  // Merges `part`, a state over later keys, into `total`. A state without keys changes nothing.
  void (*merge)(const Panel& panel, const PanelState& part, const PanelState& total);

  // numbers[i] = source[i] for `count` numbers of type Real, or, where that is float, of a 16-bit
  // type.
  void (*widen)(DataType type, const std::byte* source, std::int64_t count, Real* numbers);

  // target[i] = numbers[i], rounded to nearest even, for the same types.
  void (*narrow)(DataType type, const Real* numbers, std::int64_t count, std::byte* target);

  // target[i] = the rounding error of narrow() for numbers[i], rounded too; 0 where it is not
  // finite.
  void (*narrow_rest)(DataType type, const Real* numbers, std::int64_t count, std::byte* target);

  // Runs `steps` rounds of independent multiply-adds and nothing else, and returns the number of
  // operations, which is two for each multiply-add and lane. *sink gets a number that depends on
  // all of them.
  std::int64_t (*fma_burst)(std::int64_t steps, Real* sink);
};

using Tile = BasicTile<float>;
using PanelOptions = BasicPanelOptions<float>;
using PanelState = BasicPanelState<float>;
using DropoutRows = BasicDropoutRows<float>;
using Panel = BasicPanel<float>;
using WeightTile = BasicWeightTile<float>;
using PanelSums = BasicPanelSums<float>;
using PanelLogSums = BasicPanelLogSums<float>;
using PanelLargest = BasicPanelLargest<float>;
using KernelTable = BasicKernelTable<float>;

// The kernels for Real of the instruction set of `table`.
template <class Real>
const BasicKernelTable<Real>& kernels_in(const KernelTable& table) {
  if constexpr (std::is_same_v<Real, double>) {
    return *table.in_double;
  } else {
    return table;
  }
}

// The tables that this processor can run, the best first; empty if it can run the reference only.
const std::vector<const KernelTable*>& supported_kernels();

}}}  // namespace heed::v0::kernels
