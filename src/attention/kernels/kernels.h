// What a panel kernel works on, and the tables of kernels each instruction set exports: one for
// float and one for double, with half as many lanes.
//
// A panel is a set of rows, one a vector lane: a row is a query of one head of a key head's group.
// Panel arrays are [index][width], so that a vector holds the same index of several rows. Rows that
// are too few to fill vectors are a panel of few rows, in other lanes; only attend_rows, is_finite,
// merge, pack and unpack know it. docs/kernels.md explains the arithmetic and its order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "heed/attention/tile_loop.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "simd/processor.h"
#include "simd/shapes.h"

namespace heed { inline namespace v0 { namespace kernels {

// Keys are taken in tiles of this many, whose boundaries are absolute key indices: a part of the
// canonical order of reduction.
inline constexpr std::int32_t kTileKeys = 128;

// Keys after which a row's state is merged into its total and started anew, so that long sequences
// can be divided: a part of the canonical order of reduction, too.
inline constexpr std::int64_t kChunkKeys = 1024;

// The largest head_dim and value_dim.
inline constexpr std::int64_t kMaxDim = 65536;

// In units of log 2: an offset below leaves what is measured from it fewer than six bits behind the
// point, and weights that are off by more than 1 %. A row does not begin with such scores, to
// floats what a mask of −1e9 leaves, but with the first that is larger. −2¹⁸ for float, −2⁴⁷ for
// double.
template <class Real>
inline constexpr Real kLowestStartOf =
    -static_cast<Real>(std::int64_t{1} << (std::numeric_limits<Real>::digits - 6));
inline constexpr float kLowestStart = kLowestStartOf<float>;

// The threshold of a row that has seen finite scores, but none it could begin with.
template <class Real>
inline constexpr Real kBeyondRangeOf = -std::numeric_limits<Real>::max();
inline constexpr float kBeyondRange = kBeyondRangeOf<float>;

// Scores between the two products, [keys][width].
using detail::BasicScoreTile;
using detail::ScoreTile;

// A tensor of something about every score, as seen by a tile of them: what belongs to row r and key
// j of the tile is at data[r] + j · key_stride.
template <class T>
struct ScoreRows {
  const T* const* data = nullptr;  // [width]
  std::int64_t key_stride = 0;
};

// What a byte that stands for a bool says: somebody else may have written any number, and a bool
// that is neither 0 nor 1 cannot be read as one.
inline bool is_set(const bool& element) {
  return *reinterpret_cast<const unsigned char*>(&element) != 0;
}

// Which keys of a tile the irregular parts of a mask let through.
enum class Visibility { kNone, kMixed, kAll };

struct StoredTile;    // in stored_tile.h
struct IntegerTable;  // in integers.h

// Rows of memory that will be wanted soon, of at most so many bytes each: they are fetched into the
// second-level cache beside the products.
struct FetchedRows {
  static constexpr std::int32_t kLine = 64;  // bytes that are fetched at a time
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
  std::int32_t first_key = 0;  // where row 0 stands in the sequence
  std::int32_t num_keys = 0;
  // Of bfloat16 in pairs, rows above are of pairs of neighbours, the last one filled up with 0, and
  // these are the pairs of rows 2i and 2i + 1 of what is summed over keys, values on the way
  // forward and keys on the way back: a pair for each of their numbers.
  const Real* pairs = nullptr;
  std::int64_t pair_stride = 0;
  // The same tile as a cache stores it, where a side is quantised: that side is read here. Null
  // elsewhere.
  const StoredTile* stored = nullptr;
  FetchedRows fetched = {};
};

// Which weights of a panel fall: core/philox.h says how that is decided.
template <class Real>
struct BasicDropoutRows {
  std::array<std::array<std::uint64_t, 2>, 10> round_keys{};
  std::uint32_t threshold = 0;  // of 2¹⁶
  Real kept_factor = 1;
  std::uint32_t batch = 0;
  const std::int32_t* heads = nullptr;  // [width], of each row
  const std::int32_t* q_idx = nullptr;  // [width], positions
};

// What stands for the vectors of a panel of few rows: its query is [head_dim][num_rows], and the
// output of its state [num_rows][value_dim, filled up to whole vectors]. What else there is for
// each row is [num_rows], and of a state filled up to whole vectors.
inline constexpr std::int32_t kFewRows = 0;

// The most of them that read tensors. Pages of a cache are read by more.
inline constexpr std::int32_t kMostFewRows = 12;

// The rows of a panel: their queries and the keys they see.
template <class Real>
struct BasicPanel {
  std::int32_t vectors = kFewRows;  // 1, 2 or 3: width / lanes of a vector; or kFewRows
  std::int32_t num_rows = 0;        // of these, where it matters: of few rows, or quantised keys
  std::int32_t head_dim = 0;
  std::int32_t value_dim = 0;
  const Real* query = nullptr;  // [head_dim][width]; in pairs [⌈head_dim / 2⌉][width]
  Real scale = 1;               // of query · key, where the query is in pairs
  // What multiplies quantised keys and values, in float alone, and the query as it does so:
  // QueryDigits, null where keys are not quantised.
  const IntegerTable* integers = nullptr;
  std::byte* digits = nullptr;
  // Row r sees no key outside begin[r] ≤ k < end[r]; a row that does not exist has an empty range.
  const std::int32_t* begin = nullptr;
  const std::int32_t* end = nullptr;
  // The union and the intersection of these ranges over the rows that exist.
  std::int32_t any_begin = 0, any_end = 0;
  std::int32_t all_begin = 0, all_end = 0;
  // The union over the rows of each vector.
  std::int32_t vector_begin[kPanelVectors] = {};
  std::int32_t vector_end[kPanelVectors] = {};

  bool has_few_rows() const { return vectors == kFewRows; }
};

// How a panel is computed.
template <class Real>
struct BasicPanelOptions {
  // Values are multiplied only by weights of keys that are seen: slower, and needed only where a
  // hidden value is not finite.
  bool guarded = false;
  // Known to a panel of few rows alone: how keys and values that lie behind each other are read.
  Stretches stretches = Stretches::kGroupsInTurn;
  // Null where every weight is kept.
  const BasicDropoutRows<Real>* dropout = nullptr;
  // Known to a panel of few rows alone, which takes the place of score(), add_mask() and absorb()
  // then: the query is multiplied by scale, and this is added to the scores of the tile,
  // [key][rows, filled up to whole vectors], unless it is null; tiles are given one by one then.
  bool has_mask = false;
  const Real* mask = nullptr;
};

// The softmax of a panel's rows over some keys, with scores s in units of log 2:
// sum = Σ 2^(s − m) and out = Σ 2^(s − m) · value. A state over no key has a threshold of
// −infinity, one over no score that counts kBeyondRange, and both 0 elsewhere.
template <class Real>
struct BasicPanelState {
  Real* minus_m = nullptr;    // [width]
  Real* threshold = nullptr;  // [width]: m moves when an exponent s − m exceeds it
  Real* sum = nullptr;        // [width]
  Real* out = nullptr;        // [value_dim][width]
  // The last tile moved some m that was set before: expect the next one to do so too. A guess about
  // speed only.
  bool moving = false;
};

// The weights of a panel's rows for a tile of keys, [key][width].
template <class Real>
struct BasicWeightTile {
  std::int32_t vectors = 0;
  std::int32_t first_key = 0;  // where key 0 of the tile stands in the sequence
  // The keys that some row sees, counted from first_key; only these have weights.
  std::int32_t begin = 0, end = 0;
  Real* weights = nullptr;       // 0 where the row does not see the key
  Real* log2_weights = nullptr;  // −infinity there
};

// The denominators of a panel's rows over the keys so far: Σ exp(score − largest). A row that has
// seen nothing has −infinity and 0.
template <class Real>
struct BasicPanelSums {
  Real* largest = nullptr;  // [width]
  Real* sum = nullptr;      // [width]
};

// The logarithms of the denominators of a panel's rows, in two parts: a number close to it, and
// what it lacks, in units of log 2. −infinity for a row that sees nothing.
template <class Real>
struct BasicPanelLogSums {
  const Real* high = nullptr;       // [width]
  const Real* minus_low = nullptr;  // [width], negated
};

// The largest weights of each row so far, in falling order, and where they are.
template <class Real>
struct BasicPanelLargest {
  std::int32_t count = 0;
  Real* weights = nullptr;       // [count][width]: 0 where there is none yet
  std::int32_t* keys = nullptr;  // [count][width]: −1 there
};

// A matrix of any strides.
template <class Real>
struct BasicMatrix {
  const Real* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
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
  const char* vectors;  // what vectors are compiled for: the name without what only pairs take
  std::int32_t lanes;
  // For the loops that call a user's function: they are compiled elsewhere.
  detail::TileTarget tile_target;
  // The kernels of the backward pass: backward.h.
  const BasicBackwardTable<Real>* backward;
  // Those of quantised keys and values: integers.h. In float alone.
  const IntegerTable* integers;
  // Those of linear attention: recurrence.h. In float alone.
  const RecurrenceTable* recurrence;
  // The same kernels for double; null in their own table.
  const BasicKernelTable<double>* in_double;
  // The same with products of bfloat16 in pairs, if the processor has them, and in that table the
  // way back; null otherwise.
  const BasicKernelTable<Real>* in_pairs;
  const BasicKernelTable<Real>* in_numbers;
  // Keys whose products are added to each other before they are added to a sum, so that its bits
  // tell where they stood: 1 where none are, 2 for some pairs, more for tiles.
  std::int32_t keys_together;

  bool multiplies_pairs() const { return in_numbers != nullptr; }
  bool multiplies_tiles() const { return keys_together > 2; }

  // What kernels need is set up when one begins and given up when it ends; between these two, which
  // are of the calling thread, once for all. Null where nothing is.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;

  // Adds one tile of keys to the state. The query is multiplied by scale · log2 e.
  void (*attend)(const Tile& tile, const Panel& panel, const PanelOptions& options,
                 PanelState& state, Real* weights);

  // The same for a panel of few rows without dropout, of several tiles of a chunk, whose keys and
  // values are read as they are stored; in the table for double KvStorage::kFloat32 stands for
  // doubles, and there is no other. `next` is the tile that will follow, whose keys are fetched
  // meanwhile, or null. `weights` is [num_rows][kTileKeys].
  void (*attend_rows)(std::span<const StoredTile> tiles, const StoredTile* next, const Panel& panel,
                      const PanelOptions& options, PanelState& state, Real* weights);

  // attend() in two halves, for scores that somebody modifies in between. Here the query is
  // multiplied by scale alone. After score(), scores[j][r] holds query · key, or anything where row
  // r does not see key j; before absorb() it must be −infinity where an irregular mask hides it.
  void (*score)(const Tile& tile, const Panel& panel, Real* scores);
  void (*absorb)(const Tile& tile, const Panel& panel, const PanelOptions& options,
                 PanelState& state, Real* scores);

  // Between the two, for the keys of the tile that are asked about:
  // score = softcap · tanh(score / softcap)
  void (*cap)(const ScoreTile& tile, Real softcap);
  // score −= slopes[r] · |position of row r − key|
  void (*add_alibi)(const ScoreTile& tile, const Real* slopes);
  // score += element
  void (*add_rows)(const ScoreTile& tile, const ScoreRows<Real>& rows);
  // score of row r and key j += first[r − j · key_step], of all rows of the tile's width
  void (*add_diagonals)(const ScoreTile& tile, const Real* first, std::int32_t key_step);

  // sums[r] += Σ_j numbers[j][r] over the keys of the tile that are asked about
  void (*sum_keys)(const ScoreTile& tile, const Real* numbers, Real* sums);
  // out[i][r] += Σ_s a(i, s) · b[s][r], of `width` columns; where b is 0 nothing is added.
  void (*multiply_rows)(const BasicMatrix<Real>& a, const Real* b, std::int32_t width, Real* out);
  // Weights that absorb() left become 0 where row r does not see key j.
  void (*clear_unseen)(const Tile& tile, const Panel& panel, Real* weights);

  // Scores of key j become −infinity in the rows r whose bit r of seen[j] is 0.
  void (*hide)(const ScoreTile& tile, const std::uint64_t* seen);

  // An additive mask is a tile of what is added to scores, −infinity for keys that are hidden. This
  // puts more into it.
  void (*add_mask_rows)(const ScoreTile& mask, const ScoreRows<float>& rows);
  // Scores of hidden keys become −infinity whatever they were.
  void (*add_mask)(const ScoreTile& tile, const Real* mask);

  // Adds a tile of scores, as score() leaves them, to the denominators. Those of keys that a row
  // does not see become −infinity.
  void (*add_to_sums)(const Tile& tile, const Panel& panel, Real* scores, const PanelSums& sums);

  // Turns the scores that out.log2_weights holds into weights, at most 1, below 2⁻¹⁰⁰ exactly 0,
  // and their logarithms.
  void (*weigh)(const Tile& tile, const Panel& panel, const PanelLogSums& sums,
                const WeightTile& out);

  // sums[r] += Σ weight · log2 weight over the tile.
  void (*add_entropy)(const WeightTile& tile, Real* sums);

  // Puts the tile's weights among the largest. Of equals the first stays before the others; NaN is
  // never one.
  void (*keep_largest)(const WeightTile& tile, const PanelLargest& largest);

  // mass[j] += Σ_r weights[j][r] over the rows first ≤ r < last.
  void (*add_mass)(const WeightTile& tile, std::int32_t first, std::int32_t last, Real* mass);

  // counts[r] += how many scores of the tile are not −infinity.
  void (*count_seen)(const ScoreTile& tile, Real* counts);

  // sums[r] += Σ a · b over the keys that both tiles have; they are of the same keys and as wide.
  void (*add_products)(const WeightTile& a, const WeightTile& b, Real* sums);

  // query[d][r] = factor · rows[r][d]; the columns of rows that do not exist (null) become 0.
  void (*pack)(const Real* const* rows, std::int32_t width, std::int32_t head_dim, Real factor,
               Real* query);

  // Where bfloat16 are multiplied in pairs; null elsewhere. query[i][r] = the numbers 2i and 2i + 1
  // of rows[r], of head_dim bfloat16; 0 where there are none, or no row (null).
  void (*pack_pairs)(const Real* const* rows, std::int32_t width, std::int32_t head_dim,
                     Real* query);
  // Numbers of a panel of whole vectors, [dim][width], which are bfloat16, become the same pairs.
  void (*pair_panel)(Real* numbers, std::int32_t dim, std::int32_t width);
  // pairs[i][d] = the numbers d of rows 2i and 2i + 1, of `count` rows of bfloat16; what lacks is
  // 0. For tiles pairs[d][i], filled up to whole ones. Returns the stride of the first index.
  std::int64_t (*pair_keys)(const Real* rows, std::int64_t stride, std::int32_t count,
                            std::int32_t dim, Real* pairs);

  // rows[r][d] = factors[r] · out[d][r], for the rows that exist; never −0.
  void (*unpack)(const Real* out, std::int32_t width, std::int32_t value_dim, const Real* factors,
                 Real* const* rows);

  // The same for a panel of few rows, as its state has the output.
  void (*unpack_rows)(const Real* out, std::int32_t num_rows, std::int32_t value_dim,
                      const Real* factors, Real* const* rows);

  // Whether the sum and the output of every row are finite numbers.
  bool (*is_finite)(const Panel& panel, const PanelState& state);

  // Puts `part`, over later keys, into `total`. A state over no key changes nothing.
  void (*merge)(const Panel& panel, const PanelState& part, const PanelState& total);

  // numbers[i] = source[i] for count numbers of type Real, or of one of at most 16 bits where that
  // is float.
  void (*widen)(DataType type, const std::byte* source, std::int64_t count, Real* numbers);

  // target[i] = numbers[i], rounded to nearest even, for the same types.
  void (*narrow)(DataType type, const Real* numbers, std::int64_t count, std::byte* target);

  // target[i] = what numbers[i] lacks when it was narrowed, narrowed too; 0 where that is not
  // finite.
  void (*narrow_rest)(DataType type, const Real* numbers, std::int64_t count, std::byte* target);

  // Does nothing but independent multiply-adds, in `steps` rounds, and returns how many operations
  // that was: two for each lane. *sink gets a number that depends on every one of them.
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

// The tables this processor can run, the best first; empty where only the reference can.
const std::vector<const KernelTable*>& supported_kernels();

}}}  // namespace heed::v0::kernels
