// What a panel kernel works on, and the table of kernels each instruction set exports.
//
// A panel is a set of rows, one a vector lane: a row is a query of one head of a key head's group.
// Panel arrays are [index][width], so that a vector holds the same index of several rows.
// docs/kernels.md explains the arithmetic and its order.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/config.h"
#include "heed/detail/tile_loop.h"

namespace heed::inline v0::kernels {

// Keys are taken in tiles of this many, whose boundaries are absolute key indices: a part of the
// canonical order of reduction.
inline constexpr std::int32_t kTileKeys = 128;

// The largest head_dim and value_dim.
inline constexpr std::int64_t kMaxDim = 65536;

// The widest panel of any instruction set: three vectors of sixteen floats.
inline constexpr std::int32_t kMaxPanelWidth = 48;

// Up to kTileKeys neighbouring keys and their values, as rows of floats.
struct Tile {
  const float* key = nullptr;  // row j is at key + j · key_stride
  std::int64_t key_stride = 0;
  const float* value = nullptr;
  std::int64_t value_stride = 0;
  std::int32_t first_key = 0;  // where row 0 stands in the sequence
  std::int32_t num_keys = 0;
};

// The softmax of a panel's rows over some keys, with scores s in units of log 2:
// sum = Σ 2^(s − m) and out = Σ 2^(s − m) · value. A state over no key has a threshold of
// −infinity.
struct PanelState {
  float* minus_m = nullptr;    // [width]
  float* threshold = nullptr;  // [width]: m moves when an exponent s − m exceeds it
  float* sum = nullptr;        // [width]
  float* out = nullptr;        // [value_dim][width]
};

struct Panel {
  std::int32_t vectors = 0;  // 1, 2 or 3: width / lanes of a vector
  std::int32_t head_dim = 0;
  std::int32_t value_dim = 0;
  const float* query = nullptr;  // [head_dim][width]
  // Row r sees no key outside begin[r] ≤ k < end[r]; a row that does not exist has an empty range.
  const std::int32_t* begin = nullptr;
  const std::int32_t* end = nullptr;
  // The union and the intersection of these ranges over the rows that exist.
  std::int32_t any_begin = 0, any_end = 0;
  std::int32_t all_begin = 0, all_end = 0;
  // Values are multiplied only by weights of keys that are seen: slower, and needed only where a
  // hidden value is not finite.
  bool guarded = false;
  // The last tile moved some m: expect the next one to do so too. A guess about speed only.
  bool moving = true;
  PanelState state;
};

// The kernels of one instruction set. `weights` is scratch memory, [kTileKeys][width].
struct KernelTable {
  const char* name;
  std::int32_t lanes;
  // For the loops that call a user's function: they are compiled elsewhere.
  detail::TileTarget tile_target;

  // Adds one tile of keys to the panel's state. The query is multiplied by scale · log2 e.
  void (*attend)(const Tile& tile, Panel& panel, float* weights);

  // The same in two halves, for scores that somebody modifies in between. Here the query is
  // multiplied by scale alone. After score(), scores[j][r] holds query · key; before absorb() it
  // must be −infinity where row r does not see key j. dropout[j][r], unless null, is what the
  // weight is multiplied by.
  void (*score)(const Tile& tile, Panel& panel, float* scores);
  void (*absorb)(const Tile& tile, Panel& panel, float* scores, const float* dropout);

  // query[d][r] = factor · rows[r][d]; the columns of rows that do not exist (null) become 0.
  void (*pack)(const float* const* rows, std::int32_t width, std::int32_t head_dim, float factor,
               float* query);

  // rows[r][d] = factors[r] · out[d][r], for the rows that exist.
  void (*unpack)(const float* out, std::int32_t width, std::int32_t value_dim, const float* factors,
                 float* const* rows);

  // Whether the sum and the output of every row are finite numbers.
  bool (*is_finite)(const Panel& panel, const PanelState& state);

  // Puts `part`, over later keys, into `total` and makes its sum and output 0.
  void (*merge)(const Panel& panel, const PanelState& part, const PanelState& total);
};

// The tables this processor can run, the best first; empty where only the reference can.
const std::vector<const KernelTable*>& supported_kernels();

}  // namespace heed::inline v0::kernels
