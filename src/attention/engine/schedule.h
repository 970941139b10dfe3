// The division of problems of one shape into tasks, decided from shapes, types and options alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/kernels/decode/stored_tile.h"
#include "attention/kernels/kernels.h"
#include "attention/request/request.h"

namespace heed { inline namespace v0 { namespace engine {

// The largest number of tiles of keys that are computed together.
inline constexpr std::int32_t kMostTilesTogether =
    static_cast<std::int32_t>(kernels::kChunkKeys / kernels::kTileKeys);

// The passes for which schedules are made.
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
  std::int64_t kv_len = 0;  // an upper bound
  bool has_irregular_mask = false;
  bool has_dropout = false;
  bool has_derivatives = false;  // of terms; others than 1
  bool sums_scores = false;      // terms have gradients, which are sums over scores
  // True if the weights of a row depend on its scores and its interval of keys alone, so that
  // several calls can share its computation.
  bool has_plain_scores = false;
  bool runs_kernels_alone = false;  // no user's function runs between the panels of a tile
  // True if the tensors are copied or converted to tiles of Real; decode reads them as they are
  // stored.
  bool stages_key = false;
  bool stages_value = false;
  // Quantised keys and values are multiplied as the integers stored.
  KvStorage key_storage = KvStorage::kFloat32;
  KvStorage value_storage = KvStorage::kFloat32;
  // True if rows of keys are put together in pairs, for kernels of pairs of bfloat16.
  bool stages_pairs = false;
  bool converts_query = false;  // the query is of another type than Real
  bool converts_out = false;    // the output is of another type than Real
  // True if scores are in natural units even where no term changes them: for two passes, which must
  // compute the same scores.
  bool keeps_scores = false;

  // True if the weights of the forward pass may be kept, so that the backward pass need not compute
  // them again.
  bool keeps_weights = false;

  // True if tensors are so large that their rows are fetched before they are read and written, next
  // to the products of numbers or pairs with vectors.
  bool fetches_rows = false;
  // True if the rows of a key head are a decode panel, which reads keys and values as they are
  // stored.
  bool has_few_rows = false;
  // True if queries that the mask says see similar keys are computed together, even where they are
  // not neighbours, and without other queries.
  bool groups_queries = false;
  // True if the rows that see a tile are gathered into a panel when they are few (gathered_rows.h).
  bool gathers_rows = false;
  // The step between queries that see similar keys in some tiles only. If it is more than 1, blocks
  // have their rows in two orders (row_orders.h): in such steps, and one after the other.
  std::int64_t tile_step = 1;
  std::int64_t rows_per_step = 0;  // the rows of a block for each offset of the first order
  std::int32_t panel_rows = 0;
  std::int32_t panels_per_block = 0;  // in each order
  // The number of tiles of keys that a panel computes before the next panel does. They are
  // neighbours, of one chunk or of two.
  std::int32_t tiles_together = 1;
  // The number of chunks into which the keys of a block are divided, if there are fewer blocks than
  // threads: each chunk has a state of its own, and states are merged in order. Otherwise 1.
  std::int64_t key_chunks = 1;
  int workers = 1;

  // The number of rows of a panel of a key head with many rows.
  std::int64_t full_panel_rows() const {
    return std::int64_t{kernels::kPanelVectors} * table->lanes;
  }
  // panel_rows, rounded up to whole vectors.
  std::int64_t whole_vectors() const {
    return (panel_rows + table->lanes - 1) / table->lanes * std::int64_t{table->lanes};
  }
  // False for a block of one panel, whose rows have one order.
  bool has_two_orders() const { return tile_step > 1 && panels_per_block > 1; }
  // The number of panels of a worker.
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
  // The number of blocks for each offset of query_step(). The last block of some offsets may have
  // no rows.
  std::int64_t blocks_in_steps(const Request<Real>& request) const {
    const std::int64_t rows = request.rows_in_steps(query_step(request));
    return (rows + block_rows() - 1) / block_rows();
  }
  // The number of blocks of a key head.
  std::int64_t blocks(const Request<Real>& request) const {
    return query_step(request) * blocks_in_steps(request);
  }
  // The number of keys of the longest tile, rounded up to a multiple of the keys that kernels
  // multiply together.
  std::int64_t tile_keys() const {
    const std::int64_t together = table->keys_together;
    return (std::min<std::int64_t>(kernels::kTileKeys, kv_len) + together - 1) / together *
           together;
  }
  bool has_quantised_keys() const { return kernels::is_quantised(key_storage); }
  bool has_quantised_values() const { return kernels::is_quantised(value_storage); }
  bool copies_key() const { return stages_key && !has_few_rows && !has_quantised_keys(); }
  bool copies_value() const { return stages_value && !has_few_rows && !has_quantised_values(); }
  // True if a block copies or converts its tiles before it multiplies them.
  bool makes_tiles() const { return copies_key() || copies_value() || stages_pairs; }
  // True if a panel's query is converted to Real before it is packed.
  bool widens_query() const { return converts_query && !stages_pairs; }
  // The size of a panel's packed query, in numbers or pairs.
  std::int64_t packed_query_size() const {
    return panel_rows * (stages_pairs ? (head_dim + 1) / 2 : head_dim);
  }
  // True if the numbers multiplied are those in the tensors themselves.
  bool reads_in_place() const { return !stages_key && !stages_value && !stages_pairs; }
  // The number of pairs of rows of a tile, for sums over keys: ⌈keys / 2⌉ · dim.
  std::int64_t pair_cells() const {
    if (!stages_pairs || has_few_rows) return 0;
    return (tile_keys() + 1) / 2 * std::max(head_dim, value_dim);
  }
  // True if the keys that a mask leaves of several tiles may be computed like those of one tile.
  bool joins_tiles() const { return tiles_together > 1 && has_irregular_mask && !stages_pairs; }
  // The size of the output in the state of a panel, in numbers.
  std::int64_t out_size() const {
    if (!has_few_rows) return panel_rows * value_dim;
    return panel_rows * ((value_dim + table->lanes - 1) / table->lanes * table->lanes);
  }
};

// Makes the schedule for up to `threads` threads. The request must be the largest that is computed
// with it.
template <class Real>
Schedule<Real> make_schedule(const kernels::BasicKernelTable<Real>& table,
                             const Request<Real>& request, Pass pass, int threads);

// `schedule` with panels of whole vectors of rows, for any number of rows.
template <class Real>
Schedule<Real> in_whole_vectors(const Schedule<Real>& schedule);

// `schedule` for one panel of rows whose scores are kept, in whole vectors.
template <class Real>
Schedule<Real> exact_schedule(const Schedule<Real>& schedule);

// The number of queries of a head whose statistics are summed together: a multiple of
// kWidestPanelRows. The sums of these parts are added in order, so that threads may share a head
// without a change of any bit, and the memory is that of a few sums.
template <class Real>
std::int64_t queries_per_part(std::int64_t q_len);

}}}  // namespace heed::v0::engine
