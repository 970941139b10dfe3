#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "attention/engine/exact_rows.h"
#include "attention/engine/gathered_rows.h"
#include "attention/engine/kernel_scope.h"
#include "attention/engine/key_pairs.h"
#include "attention/engine/keys_together.h"
#include "attention/engine/passes.h"
#include "attention/engine/row_orders.h"
#include "attention/engine/rows_ahead.h"
#include "attention/engine/running_softmax.h"
#include "attention/engine/tile_map.h"
#include "attention/engine/work_queue.h"

namespace heed { inline namespace v0 { namespace engine {

namespace {

using kernels::kChunkKeys;

// The blocks of all jobs, numbered consecutively.
template <class Real>
class Blocks {
 public:
  struct Item {
    const ForwardCall<Real>& job;
    RowBlock block;
  };

  Blocks(std::span<const ForwardCall<Real>> jobs, const Schedule<Real>& schedule)
      : jobs_(jobs), schedule_(schedule) {
    if (jobs.size() > 1) ends_.reserve(jobs.size());
    for (const ForwardCall<Real>& job : jobs) {
      count_ += count(job);
      if (jobs.size() > 1) ends_.push_back(count_);
    }
  }

  std::int64_t count() const { return count_; }

  Item operator[](std::int64_t item) const {
    const ForwardCall<Real>* job = jobs_.data();
    if (!ends_.empty()) {
      job += std::upper_bound(ends_.begin(), ends_.end(), item) - ends_.begin();
      item -= ends_[static_cast<std::size_t>(job - jobs_.data())] - count(*job);
    }
    const Request<Real>& request = *job->request;
    const std::int64_t heads = request.num_kv_heads();
    const std::int64_t step = schedule_.query_step(request);
    const std::int64_t in_steps = schedule_.blocks_in_steps(request);
    const std::int64_t head = item / (step * in_steps);
    const std::int64_t block = item % (step * in_steps);
    const std::int64_t first_query = block % step;
    const std::int64_t rows = request.rows_in_steps(step, first_query);
    // Blocks with the last rows come first: under a causal mask these see the most keys.
    const std::int64_t first = (in_steps - 1 - block / step) * schedule_.block_rows();
    return {*job,
            {job->batches.begin + head / heads,
             head % heads,
             {std::min(first, rows), std::min(first + schedule_.block_rows(), rows)},
             first_query,
             step}};
  }

 private:
  std::int64_t count(const ForwardCall<Real>& job) const {
    return (job.batches.end - job.batches.begin) * job.request->num_kv_heads() *
           schedule_.blocks(*job.request);
  }

  std::span<const ForwardCall<Real>> jobs_;
  const Schedule<Real>& schedule_;
  // The number of blocks up to the end of each job, if there are several.
  std::vector<std::int64_t> ends_;
  std::int64_t count_ = 0;
};

template <class Real>
struct WorkerMemory {
  StagingMemory<Real> staging;
  ScoreMemory<Real> scores;
  KeysTogetherMemory<Real> together;
  // [panel_rows][head_dim or value_dim], for the conversion of tensors of another type.
  Piece<Real> rows;
  Piece<RunningSoftmax<Real>> panels;
  Repeated<SoftmaxMemory<Real>> panel_memory;

  WorkerMemory() = default;
  WorkerMemory(const Schedule<Real>& schedule, Layout& layout)
      : staging(schedule, layout),
        scores(schedule, layout),
        together(schedule, layout),
        rows(layout.add<Real>(schedule.panel_rows *
                              std::max(schedule.widens_query() ? schedule.head_dim : 0,
                                       schedule.converts_out ? schedule.value_dim : 0))),
        panels(layout.add<RunningSoftmax<Real>>(schedule.num_panels())),
        panel_memory(schedule, schedule.num_panels(), layout) {}
};

// The computation of one thread, one block of panels at a time.
template <class Real>
class Worker {
 public:
  using Item = typename Blocks<Real>::Item;

  Worker(const Schedule<Real>& schedule, const WorkerMemory<Real>& parts, std::byte* memory)
      : schedule_(schedule),
        staging_(parts.staging.in(memory)),
        scratch_(parts.scores.in(memory)),
        together_(parts.together.in(memory)),
        staged_rows_(parts.rows.in(memory)),
        panels_(parts.panels.in(memory)) {
    static_assert(std::is_trivially_destructible_v<RunningSoftmax<Real>>);
    scratch_.together = &together_;
    if (schedule.gathers_rows) {
      gathered_.emplace(schedule, parts.panel_memory.parts,
                        parts.panel_memory.at(memory, schedule.num_panels() - 1));
    }
    for (std::int64_t i = 0; i < schedule.num_panels(); ++i) {
      std::construct_at(panels_ + i, schedule, parts.panel_memory.parts,
                        parts.panel_memory.at(memory, i));
    }
  }

  // Computes a block and writes the result.
  void compute(const Item& item) {
    const auto panels = start(item);
    resume(item, panels);
    walk(item, panels, own_keys(item));
    for (RunningSoftmax<Real>& panel : panels) panel.end_chunk();
    finish(item, panels);
  }

  // compute() in two steps, for a block of one panel: compute_chunk() for each chunk of keys,
  // numbered from 0, then merge_chunks(), which merges their states in order.
  void compute_chunk(const Item& item, std::int64_t chunk, const SavedChunk<Real>& saved) {
    const auto panels = start(item);
    *saved.is_seen = false;
    if (panels.empty()) return;
    panels.front().compute_in(saved);
    const RowRange keys = own_keys(item);
    const std::int64_t begin = keys.begin + chunk * kChunkKeys;
    walk(item, panels, {begin, std::min(begin + kChunkKeys, keys.end)});
    *saved.is_seen = panels.front().has_seen_chunk();
  }
  template <class SavedAt>
  void merge_chunks(const Item& item, const SavedAt& saved_at) {
    const auto panels = start(item);
    if (panels.empty()) return;
    resume(item, panels);
    for (std::int64_t chunk = 0; chunk < schedule_.key_chunks; ++chunk) {
      panels.front().take_over(saved_at(chunk));
    }
    finish(item, panels);
  }

 private:
  // The keys that the states of the continuation do not have.
  static RowRange own_keys(const Item& item) {
    const RowRange keys = item.job.request->keys();
    return {std::max(item.job.continuation.first_key, keys.begin), keys.end};
  }

  std::span<RunningSoftmax<Real>> start(const Item& item) {
    std::size_t count = 0;
    RowBlock panel = item.block;
    for (std::int64_t first = item.block.rows.begin; first < item.block.rows.end; ++count) {
      panel.rows = {first, std::min(first + schedule_.panel_rows, item.block.rows.end)};
      panels_[count].start(item.job, panel, staged_rows_);
      first = panel.rows.end;
    }
    start_in_steps(item);
    return {panels_, count};
  }

  void start_in_steps(const Item& item) {
    if (!schedule_.has_two_orders()) return;
    orders_.emplace(schedule_, *item.job.request, item.block);
    std::size_t count = 0;
    RunningSoftmax<Real>* const panels = panels_ + schedule_.panels_per_block;
    orders_->for_each_panel(
        [&](const RowBlock& panel) { panels[count++].start(item.job, panel, staged_rows_); });
    panels_in_steps_ = {panels, count};
  }

  void resume(const Item& item, std::span<RunningSoftmax<Real>> panels) {
    if (item.job.continuation.first_key == 0) return;
    for (RunningSoftmax<Real>& panel : panels) panel.resume(item.job.continuation.states);
  }

  void walk(const Item& item, std::span<RunningSoftmax<Real>> panels, RowRange keys) {
    if (schedule_.has_few_rows) return walk_stored(item, panels, keys);
    std::int32_t count = 0;
    std::span<RunningSoftmax<Real>> taken = panels;
    const auto add = [&] {
      if (count > 0) add_tiles(item, taken, std::exchange(count, 0));
    };
    walk_tiles(panels, keys, [&](RowRange some) {
      const auto suited = suits_steps(some) ? panels_in_steps_ : panels;
      const bool is_other = suited.data() != taken.data();
      if (is_other || count == tiles_together(taken)) add();
      if (is_other) move_sums(std::exchange(taken, suited), suited, some);
      read_tile(item, some, count++);
      ahead_.start_tile(
          following_keys<Real, RunningSoftmax<Real>>(schedule_, taken, {some.end, keys.end}));
    });
    add();
    if (taken.data() != panels.data()) move_sums(taken, panels, {keys.end, keys.end});
  }

  // The number of tiles that a panel takes in a row. It is 1 in the order of rows, in which a panel
  // may see all keys of a tile.
  std::int32_t tiles_together(std::span<const RunningSoftmax<Real>> panels) const {
    const bool are_in_order = panels.data() != panels_in_steps_.data();
    return schedule_.has_two_orders() && are_in_order ? 1 : schedule_.tiles_together;
  }

  bool suits_steps(RowRange keys) const {
    return !panels_in_steps_.empty() && orders_->suits_steps(keys);
  }

  // Moves the sums of rows to the panels of the other order, which continue with the keys `next`.
  void move_sums(std::span<RunningSoftmax<Real>> from, std::span<RunningSoftmax<Real>> to,
                 RowRange next) {
    RunningSoftmax<Real>::begin_moved(from, to, next.begin);
    orders_->move_sums(from, to, to.data() == panels_in_steps_.data());
  }

  // Reads keys and values into tile i of those that are computed together.
  void read_tile(const Item& item, RowRange keys, std::int32_t i) {
    auto& tile = tiles_[static_cast<std::size_t>(i)];
    tile = item.job.keys->tile(item.block.batch, item.block.kv_head, keys, staging_);
    if (schedule_.has_quantised_keys() || schedule_.has_quantised_values()) {
      auto& stored = stored_tiles_[static_cast<std::size_t>(i)];
      stored = item.job.keys->stored_tile(item.block.batch, item.block.kv_head, keys);
      tile.stored = &stored;
    }
    if (!schedule_.stages_pairs) return;
    put_pairs(schedule_, SummedOverKeys::kValues, tile,
              staging_.pairs + i * schedule_.pair_cells());
  }

  // Computes the first `count` tiles.
  void add_tiles(const Item& item, std::span<RunningSoftmax<Real>> panels, std::int32_t count) {
    const KernelScope<Real> scope(*schedule_.table, schedule_.runs_kernels_alone);
    if (gathered_ && gathered_->add(item.job, panels, tiles_.front(), scratch_, staged_rows_)) {
      return;
    }
    for (std::size_t p = 0; p < panels.size(); ++p) {
      auto tiles = std::span(tiles_).first(static_cast<std::size_t>(count));
      while (!tiles.empty()) {
        std::size_t taken = 1;
        if (panels[p].rows().sees(tiles.front())) {
          taken = static_cast<std::size_t>(panels[p].tiles_together(tiles));
          if (schedule_.fetches_rows) {
            tiles.front().fetched = rows_ahead(item, panels, p, tiles[taken - 1]);
          }
          panels[p].add(tiles.first(taken), scratch_);
        }
        tiles = tiles.subspan(taken);
      }
    }
  }

  // The rows that panel p fetches while it computes a tile, a few lines at a time: the memory of
  // its results if it is the last tile; the queries of the next panel if they have not been read;
  // and of the keys that follow, the next ones that earlier panels have not fetched.
  kernels::FetchedRows rows_ahead(const Item& item, std::span<const RunningSoftmax<Real>> panels,
                                  std::size_t p, const kernels::BasicTile<Real>& tile) {
    const PanelRows<Real>& rows = panels[p].rows();
    ahead_.start_panel();
    if (rows.tiles().ends_with(tile.first_key) && !item.job.continuation.leaves_states) {
      ahead_.add_rows(rows, item.job.out, schedule_.value_dim);
    }
    if (p + 1 < panels.size() && !panels[p + 1].rows().is_packed()) {
      ahead_.add_rows(panels[p + 1].rows(), item.job.query, schedule_.head_dim);
    }
    // If scores are kept, only products with keys fetch.
    const std::int64_t numbers_per_key =
        schedule_.head_dim + (rows.keeps_scores() ? 0 : schedule_.value_dim);
    ahead_.add_following(rows, tile, numbers_per_key, panels.size() - p);
    return ahead_.rows();
  }

  // walk() for decode. The tiles of a chunk are computed together once the tile that follows is
  // known. That is fetched in the meantime: between the tiles there is nothing to compute, only
  // memory to read.
  void walk_stored(const Item& item, std::span<RunningSoftmax<Real>> panels, RowRange keys) {
    std::size_t count = 0;
    const auto add = [&](const kernels::StoredTile* next) {
      for (RunningSoftmax<Real>& panel : panels) {
        panel.add({stored_tiles_.data(), count}, next, scratch_);
        next = nullptr;
      }
    };
    walk_tiles(panels, keys, [&](RowRange some) {
      kernels::StoredTile& tile = stored_tiles_[count];
      item.job.keys->describe(item.block.batch, item.block.kv_head, some, tile);
      if (tile.first_key / kChunkKeys != stored_tiles_.front().first_key / kChunkKeys) {
        add(&tile);
        stored_tiles_.front() = tile;
        count = 0;
      }
      ++count;
    });
    if (count > 0) add(nullptr);
  }

  void finish(const Item& item, std::span<RunningSoftmax<Real>> panels) {
    panels_in_steps_ = {};
    for (RunningSoftmax<Real>& panel : panels) {
      if (item.job.continuation.leaves_states) {
        panel.leave(item.job.continuation.states);
        continue;
      }
      // NaN in a row's keys or values is now in its sums. If the NaN was hidden, it came from a
      // product with a weight of 0 and must be removed.
      if (!panel.is_finite()) {
        if (asks_for_all_keys(item)) continue;
        panel.restart_guarded();
        walk(item, {&panel, 1}, item.job.request->keys());
        panel.end_chunk();
      }
      const auto normalisers = panel.normalisers(*item.job.request);
      panel.write(item.job, normalisers);
      std::array<RowIndex, kernels::kMaxPanelWidth> rows;
      const auto lost =
          static_cast<std::size_t>(panel.lost_rows(*item.job.request, normalisers, rows));
      if (lost == 0 || asks_for_all_keys(item)) continue;
      compute_exactly(item.job, item.block.batch, schedule_, {rows.data(), lost});
    }
  }

  // Rows that need all keys again cannot have them in a job with a part of the keys; the job
  // reports it.
  static bool asks_for_all_keys(const Item& item) {
    std::atomic<bool>* asks = item.job.continuation.asks_for_all_keys;
    if (asks == nullptr) return false;
    asks[item.block.batch].store(true, std::memory_order_relaxed);
    return true;
  }

  const Schedule<Real>& schedule_;
  Staging<Real> staging_;
  ScoreScratch<Real> scratch_;
  KeysTogether<Real> together_;
  Real* staged_rows_;
  RunningSoftmax<Real>* panels_;  // [num_panels()]; those in the order of rows come first
  // For a block with its rows in two orders: the panels of rows in steps.
  std::optional<RowOrders<Real>> orders_;
  std::span<RunningSoftmax<Real>> panels_in_steps_;
  std::optional<GatheredRows<Real>> gathered_;
  std::array<kernels::BasicTile<Real>, kMostTilesTogether> tiles_;  // tiles_together
  // The tiles of a chunk, and the one that follows.
  std::array<kernels::StoredTile, kChunkKeys / kernels::kTileKeys + 1> stored_tiles_;
  RowsAhead ahead_;
};

template <class Real>
struct ForwardMemory {
  Layout layout;
  Repeated<WorkerMemory<Real>> workers;
  Repeated<SavedChunkMemory<Real>> chunks;  // for all blocks, if threads share their keys

  ForwardMemory(const Schedule<Real>& schedule, std::int64_t blocks)
      : workers(schedule, schedule.workers, layout) {
    if (schedule.key_chunks == 1) return;
    chunks = {schedule, checked_multiply(blocks, schedule.key_chunks), layout};
  }
};

}  // namespace

template <class Real>
std::size_t forward_bytes(const Request<Real>& request, const Schedule<Real>& schedule) {
  const std::int64_t blocks = checked_multiply(
      checked_multiply(request.shape.batch, request.num_kv_heads()), schedule.blocks(request));
  return Arena::bytes_for(ForwardMemory<Real>(schedule, blocks).layout);
}

template <class Real>
void forward(std::span<const ForwardCall<Real>> jobs, const Schedule<Real>& schedule,
             std::span<std::byte> workspace) {
  const Blocks<Real> blocks(jobs, schedule);
  const std::int64_t chunks = schedule.key_chunks;
  const ForwardMemory<Real> parts(schedule, blocks.count());
  const Arena arena(parts.layout, workspace);
  const auto start = [&](std::int64_t w) {
    return Worker<Real>(schedule, parts.workers.parts, parts.workers.at(arena.memory(), w));
  };
  if (chunks == 1) {
    deal_out(blocks.count(), schedule.workers, start,
             [&](Worker<Real>& worker, std::int64_t item) { worker.compute(blocks[item]); });
    return;
  }
  const auto saved_at = [&](std::int64_t item) {
    return parts.chunks.parts.in(parts.chunks.at(arena.memory(), item));
  };
  deal_out(blocks.count() * chunks, schedule.workers, start,
           [&](Worker<Real>& worker, std::int64_t item) {
             worker.compute_chunk(blocks[item / chunks], item % chunks, saved_at(item));
           });
  deal_out(blocks.count(), schedule.workers, start, [&](Worker<Real>& worker, std::int64_t item) {
    worker.merge_chunks(blocks[item],
                        [&](std::int64_t chunk) { return saved_at(item * chunks + chunk); });
  });
}

template std::size_t forward_bytes(const Request<float>&, const Schedule<float>&);
template std::size_t forward_bytes(const Request<double>&, const Schedule<double>&);
template void forward(std::span<const ForwardCall<float>>, const Schedule<float>&,
                      std::span<std::byte>);
template void forward(std::span<const ForwardCall<double>>, const Schedule<double>&,
                      std::span<std::byte>);

}}}  // namespace heed::v0::engine
