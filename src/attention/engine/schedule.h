// How problems of one shape are divided: decided before a number is looked at.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/kernels/decode/stored_tile.h"
#include "attention/kernels/kernels.h"
#include "attention/request/request.h"

namespace heed { inline namespace v0 { namespace engine {

// The most tiles of keys that are computed together.
inline constexpr std::int32_t kMostTilesTogether =
    static_cast<std::int32_t>(kernels::kChunkKeys / kernels::kTileKeys);

// What a schedule is for.
enum class Pass {
  kForward,
  kBackward,
  kWeights,  // weights before dropout, without values
};

template <class Real>
struct Schedule {
  const kernels::BasicKernelTable<Real>* table = nullptr;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t kv_len = 0;  // at most
  bool has_irregular_mask = false;
  bool has_dropout = false;
  bool has_derivatives = false;  // of terms, other than 1
  // Nothing but the interval of keys that each row sees decides its weights: what several calls may
  // compute together.
  bool has_plain_scores = false;
  bool runs_kernels_alone = false;  // nothing of a user's between the panels of a tile
  // Of panels that are not of few rows: these copy no tile.
  bool stages_key = false;
  bool stages_value = false;
  // What is quantised is multiplied as the whole numbers that are stored.
  KvStorage key_storage = KvStorage::kFloat32;
  KvStorage value_storage = KvStorage::kFloat32;
  bool stages_pairs = false;    // pairs of keys are put together, for kernels that multiply these
  bool converts_query = false;  // the query is of another type than Real
  bool converts_out = false;    // what is written is
  // Scores are written in natural units even where no term changes them: for two passes, which must
  // find the same scores.
  bool keeps_scores = false;

  // What the forward pass makes of weights may be kept for the way back, which then does not
  // compute them again.
  bool keeps_weights = false;

  // Tensors are so large that their rows are fetched before they are read and written, by the
  // products of numbers or pairs with vectors.
  bool fetches_rows = false;
  // The rows of a key head are a panel of few rows, which reads keys and values as they are stored.
  bool has_few_rows = false;
  // Queries that see alike are taken together, even where they are not neighbours, and without
  // others.
  bool groups_queries = false;
  // The rows that see a tile are taken alone where these are few (gathered_rows.h).
  bool gathers_rows = false;
  // Where that holds of some tiles alone, blocks have their rows in two orders (row_orders.h): this
  // far apart, and as they follow each other. 1 elsewhere.
  std::int64_t tile_step = 1;
  std::int64_t rows_per_step = 0;  // of a block, in the first of these orders
  std::int32_t panel_rows = 0;
  std::int32_t panels_per_block = 0;  // in each order
  // Tiles of keys that a panel computes one after the other, before the next panel does: those that
  // follow each other, of one chunk or of two.
  std::int32_t tiles_together = 1;
  // Where there are fewer blocks than threads, these share the keys of a block: every chunk of keys
  // gets a state of its own, which are merged in order. 1 where they do not.
  std::int64_t key_chunks = 1;
  int workers = 1;

  // Rows of a panel where a key head has many.
  std::int64_t full_panel_rows() const {
    return std::int64_t{kernels::kPanelVectors} * table->lanes;
  }
  // The rows of a panel, filled up to whole vectors.
  std::int64_t whole_vectors() const {
    return (panel_rows + table->lanes - 1) / table->lanes * std::int64_t{table->lanes};
  }
  // One panel has its rows in one order.
  bool has_two_orders() const { return tile_step > 1 && panels_per_block > 1; }
  // Of a worker.
  std::int64_t num_panels() const {
    return std::int64_t{panels_per_block} * (has_two_orders() ? 2 : 1) + (gathers_rows ? 1 : 0);
  }
  std::int64_t block_rows() const {
    return has_two_orders() ? tile_step * rows_per_step
                            : std::int64_t{panel_rows} * panels_per_block;
  }
  std::int64_t query_step(const Request<Real>& request) const {
    return groups_queries ? request.query_step() : 1;
  }
  // Blocks of queries that are query_step() apart; the last one of some may have no rows.
  std::int64_t blocks_in_steps(const Request<Real>& request) const {
    const std::int64_t rows = request.rows_in_steps(query_step(request));
    return (rows + block_rows() - 1) / block_rows();
  }
  // Blocks of a key head.
  std::int64_t blocks(const Request<Real>& request) const {
    return query_step(request) * blocks_in_steps(request);
  }
  // Keys of the longest tile there is, filled up to what is multiplied together.
  std::int64_t tile_keys() const {
    const std::int64_t together = table->keys_together;
    return (std::min<std::int64_t>(kernels::kTileKeys, kv_len) + together - 1) / together *
           together;
  }
  bool has_quantised_keys() const { return kernels::is_quantised(key_storage); }
  bool has_quantised_values() const { return kernels::is_quantised(value_storage); }
  bool copies_key() const { return stages_key && !has_few_rows && !has_quantised_keys(); }
  bool copies_value() const { return stages_value && !has_few_rows && !has_quantised_values(); }
  // Whether a block makes its tiles before it multiplies them.
  bool makes_tiles() const { return copies_key() || copies_value() || stages_pairs; }
  // Whether a panel's query becomes numbers before it is packed.
  bool widens_query() const { return converts_query && !stages_pairs; }
  // Numbers of a panel's query, or pairs.
  std::int64_t packed_query_size() const {
    return panel_rows * (stages_pairs ? (head_dim + 1) / 2 : head_dim);
  }
  // Whether the numbers that are multiplied are those of the tensors, where these are.
  bool reads_in_place() const { return !stages_key && !stages_value && !stages_pairs; }
  // Pairs of the keys of a tile, of what is summed over keys.
  std::int64_t pair_cells() const {
    if (!stages_pairs || has_few_rows) return 0;
    return (tile_keys() + 1) / 2 * std::max(head_dim, value_dim);
  }
  // Whether the keys that a mask leaves of several tiles may be computed as those of one.
  bool joins_tiles() const { return tiles_together > 1 && has_irregular_mask && !stages_pairs; }
  // Numbers of an output whose rows are those of a panel, as a state has it.
  std::int64_t out_size() const {
    if (!has_few_rows) return panel_rows * value_dim;
    return panel_rows * ((value_dim + table->lanes - 1) / table->lanes * table->lanes);
  }
};

// `threads` may be used. The request must be the largest that is computed with it.
template <class Real>
Schedule<Real> make_schedule(const kernels::BasicKernelTable<Real>& table,
                             const Request<Real>& request, Pass pass, int threads);

// As `schedule`, in panels of whole vectors of rows, however few rows there are.
template <class Real>
Schedule<Real> in_whole_vectors(const Schedule<Real>& schedule);

// The same for one panel of rows whose scores are kept.
template <class Real>
Schedule<Real> exact_schedule(const Schedule<Real>& schedule);

// How many queries of a head are taken together where something is added up over queries: whole
// panels, but for the last. What such parts have summed is added in order, so that threads may
// share a head and no bit depends on how, for memory for a few sums.
std::int64_t queries_per_part(std::int64_t q_len, std::int64_t panel_rows);

}}}  // namespace heed::v0::engine
