#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "attention/engine/kernel_scope.h"
#include "attention/engine/key_pairs.h"
#include "attention/engine/keys_together.h"
#include "attention/engine/panel_gradients.h"
#include "attention/engine/passes.h"
#include "attention/engine/row_orders.h"
#include "attention/engine/rows_ahead.h"
#include "attention/engine/tile_map.h"
#include "attention/engine/work_queue.h"

namespace heed { inline namespace v0 { namespace engine {

namespace {

// Memory for rows whose weights need two passes.
template <class Real>
struct ExactPanelMemory {
  Layout layout;
  RowsMemory<Real> rows;
  WeightsMemory<Real> weights;
  GradientsMemory<Real> gradients;

  StagingMemory<Real> staging;

  explicit ExactPanelMemory(const Schedule<Real>& schedule)
      : rows(schedule, layout),
        weights(schedule, layout),
        gradients(schedule, layout),
        staging(schedule, layout) {}
};

template <class Real>
struct BackwardWorkerMemory {
  StagingMemory<Real> staging;
  GradientScratchMemory<Real> scratch;
  KeysTogetherMemory<Real> together;
  Repeated<GradientsMemory<Real>> panels;

  BackwardWorkerMemory() = default;
  BackwardWorkerMemory(const Schedule<Real>& schedule, Layout& layout)
      : staging(schedule, layout),
        scratch(schedule, layout),
        together(schedule, layout),
        panels(schedule, schedule.num_panels(), layout) {}
};

// The memory and the computation of one thread.
template <class Real>
class BackwardWorker {
 public:
  BackwardWorker(const Schedule<Real>& schedule, const BackwardWorkerMemory<Real>& parts,
                 std::byte* memory)
      : schedule_(schedule),
        staging_(parts.staging.in(memory)),
        scratch_(parts.scratch.in(memory)),
        together_(parts.together.in(memory)) {
    scratch_.scores.together = &together_;
    panels_.reserve(static_cast<std::size_t>(schedule.num_panels()));
    for (std::int64_t i = 0; i < schedule.num_panels(); ++i) {
      panels_.emplace_back(schedule, parts.panels.parts, parts.panels.at(memory, i));
    }
  }

  void compute(const PanelTask<Real>& task) {
    const RowRange queries = task.task.queries;
    const std::int64_t group = task.job.request->heads_per_kv_head;
    const std::int64_t step = std::min(query_step(*task.job.request), queries.end - queries.begin);
    for (std::int64_t first = 0; first < step; ++first) {
      RowBlock block{.batch = task.task.batch,
                     .kv_head = task.task.kv_head,
                     .rows = {0, 0},
                     .first_query = queries.begin + first,
                     .query_step = step};
      const std::int64_t rows = (queries.end - block.first_query + step - 1) / step * group;
      for (; block.rows.begin < rows; block.rows.begin = block.rows.end) {
        block.rows.end = std::min(block.rows.begin + schedule_.block_rows(), rows);
        compute_block(task, block);
      }
    }
    add_lost_rows(task);
  }

 private:
  // The step between queries that are computed together. With steps, only the sums over queries of
  // each key stay in the same order, as the queries that see a key are in steps; terms and sinks
  // sum over all queries.
  static std::int64_t query_step(const Request<Real>& request) {
    return request.terms.empty() && !request.sinks ? request.query_step() : 1;
  }

  void compute_block(const PanelTask<Real>& task, const RowBlock& block) {
    std::size_t count = 0;
    RowBlock panel = block;
    for (std::int64_t first = block.rows.begin; first < block.rows.end; first = panel.rows.end) {
      panel.rows = {first, std::min<std::int64_t>(first + schedule_.panel_rows, block.rows.end)};
      panels_[count++].place(task, panel);
    }
    const std::span panels(panels_.data(), count);
    place_in_steps(task, block);
    add_tiles(task, schedule_, panels, staging_);
    panels_in_steps_ = {};
    start(task, panels);
    for (const PanelGradients<Real>& some : panels) some.write(task.job, scratch_);
    for (const PanelGradients<Real>& some : panels) {
      lost_rows_.insert(lost_rows_.end(), some.lost_rows().begin(), some.lost_rows().end());
    }
  }

  void place_in_steps(const PanelTask<Real>& task, const RowBlock& block) {
    if (!schedule_.has_two_orders()) return;
    orders_.emplace(schedule_, *task.job.request, block);
    std::size_t count = 0;
    PanelGradients<Real>* const panels = panels_.data() + schedule_.panels_per_block;
    orders_->for_each_panel([&](const RowBlock& panel) { panels[count++].place(task, panel); });
    panels_in_steps_ = {panels, count};
  }

  // The number of tiles that a panel takes in a row. It is 1 in the order of rows, in which a panel
  // may see all keys of a tile.
  std::int32_t tiles_together(const Schedule<Real>& schedule,
                              std::span<const PanelGradients<Real>> panels) const {
    const bool are_in_order = panels.data() != panels_in_steps_.data();
    return schedule.has_two_orders() && are_in_order ? 1 : schedule.tiles_together;
  }

  bool suits_steps(RowRange keys) const {
    return !panels_in_steps_.empty() && orders_->suits_steps(keys);
  }

  // Moves the sums of the rows' queries to the panels of the other order.
  void move_sums(const PanelTask<Real>& task, std::span<PanelGradients<Real>> from,
                 std::span<PanelGradients<Real>> to) {
    start(task, to);
    orders_->move_sums(from, to, to.data() == panels_in_steps_.data());
  }

  // In the order of rows, in which the sums of sinks are made.
  void start(const PanelTask<Real>& task, std::span<PanelGradients<Real>> panels) {
    for (PanelGradients<Real>& some : panels) {
      if (!some.is_started()) some.start(task, scratch_);
    }
  }

  // Adds the gradients of rows that a panel could not compute: after all others and as many at a
  // time as every instruction set can, as the order of additions must not depend on it.
  void add_lost_rows(const PanelTask<Real>& task) {
    constexpr std::size_t kRows = kernels::kSummedRows<Real>;
    for (std::span<const RowIndex> rest = lost_rows_; !rest.empty();) {
      const std::size_t count = std::min(kRows, rest.size());
      compute_exactly(task, rest.first(count));
      rest = rest.subspan(count);
    }
    lost_rows_.clear();
  }

  void compute_exactly(const PanelTask<Real>& task, std::span<const RowIndex> indices) {
    const Schedule<Real> schedule = exact_schedule(schedule_);
    const ExactPanelMemory<Real> parts(schedule);
    const Arena arena(parts.layout);
    PanelRows<Real> rows(schedule, parts.rows, arena.memory());
    PanelWeights<Real> weights(schedule, parts.weights, arena.memory());
    PanelGradients<Real> gradients(schedule, parts.gradients, arena.memory());
    const Staging<Real> staging = parts.staging.in(arena.memory());
    rows.place(task.job, task.task.batch, indices);
    rows.pack(scratch_.rows);
    weights.start(rows, *task.job.request);
    walk_tiles(std::span(&weights, 1), task.job.request->keys(), [&](RowRange keys) {
      weights.add(read(task, keys, staging), {scratch_.scores, nullptr});
    });
    weights.finish();
    gradients.start(task, indices, weights, scratch_);
    add_tiles(task, schedule, std::span(&gradients, 1), staging);
    gradients.write(task.job, scratch_);
  }

  void add_tiles(const PanelTask<Real>& task, const Schedule<Real>& schedule,
                 std::span<PanelGradients<Real>> panels, const Staging<Real>& staging) {
    const RowRange all = task.job.request->keys();
    std::span<PanelGradients<Real>> taken = panels;
    std::int32_t count = 0;
    const auto add = [&] {
      if (count > 0) add_read(task, schedule, taken, std::exchange(count, 0));
    };
    walk_tiles(panels, all, [&](RowRange keys) {
      const auto suited = suits_steps(keys) ? panels_in_steps_ : panels;
      const bool is_other = suited.data() != taken.data();
      if (is_other || count == tiles_together(schedule, taken)) add();
      if (is_other) move_sums(task, std::exchange(taken, suited), suited);
      auto& tile = tiles_[static_cast<std::size_t>(count++)];
      tile = read(task, keys, staging);
      if (schedule.stages_pairs) put_pairs(schedule, SummedOverKeys::kKeys, tile, staging.pairs);
      ahead_.start_tile(
          following_keys<Real, PanelGradients<Real>>(schedule, taken, {keys.end, all.end}));
    });
    add();
    if (taken.data() != panels.data()) move_sums(task, taken, panels);
  }

  // Adds `count` tiles that have been read.
  void add_read(const PanelTask<Real>& task, const Schedule<Real>& schedule,
                std::span<PanelGradients<Real>> panels, std::int32_t count) {
    const auto all = std::span(tiles_).first(static_cast<std::size_t>(count));
    const bool has_finite_keys = std::all_of(all.begin(), all.end(), [&](const auto& tile) {
      return schedule.table->backward->has_finite_keys(
          tile, static_cast<std::int32_t>(schedule.head_dim));
    });
    const KernelScope<Real> scope(*schedule.table, schedule.runs_kernels_alone);
    for (std::size_t p = 0; p < panels.size(); ++p) {
      PanelGradients<Real>& panel = panels[p];
      for (auto tiles = all; !tiles.empty();) {
        std::size_t taken = 1;
        if (panel.rows().sees(tiles.front())) {
          taken = static_cast<std::size_t>(panel.tiles_together(tiles));
          if (schedule.fetches_rows) {
            tiles.front().fetched = rows_ahead(task, panels, p, tiles[taken - 1]);
          }
          start(task, panels.first(p + 1));
          panel.add(tiles.first(taken), has_finite_keys, scratch_);
        }
        tiles = tiles.subspan(taken);
      }
    }
  }

  // The rows that panel p fetches while it computes a tile: as in the forward pass, but during one
  // product only.
  kernels::FetchedRows rows_ahead(const PanelTask<Real>& task,
                                  std::span<const PanelGradients<Real>> panels, std::size_t p,
                                  const kernels::BasicTile<Real>& tile) {
    const BackwardCall<Real>& job = task.job;
    const PanelRows<Real>& rows = panels[p].rows();
    ahead_.start_panel();
    if (rows.tiles().ends_with(tile.first_key)) {
      ahead_.add_rows(rows, job.gradients.query, schedule_.head_dim);
    }
    if (p + 1 < panels.size() && !panels[p + 1].is_started()) {
      const PanelRows<Real>& others = panels[p + 1].rows();
      ahead_.add_rows(others, job.query, schedule_.head_dim);
      ahead_.add_rows(others, job.grad_out, schedule_.value_dim);
      ahead_.add_rows(others, job.out, schedule_.value_dim);
    }
    ahead_.add_following(rows, tile, schedule_.head_dim, panels.size() - p);
    return ahead_.rows();
  }

  static kernels::BasicTile<Real> read(const PanelTask<Real>& task, RowRange keys,
                                       const Staging<Real>& staging) {
    return task.job.keys->tile(task.task.batch, task.task.kv_head, keys, staging);
  }

  const Schedule<Real>& schedule_;
  Staging<Real> staging_;
  GradientScratch<Real> scratch_;
  KeysTogether<Real> together_;
  // [num_panels()]; those in the order of rows come first
  std::vector<PanelGradients<Real>> panels_;
  // For a block with its rows in two orders: the panels of rows in steps.
  std::optional<RowOrders<Real>> orders_;
  std::span<PanelGradients<Real>> panels_in_steps_;
  std::vector<RowIndex> lost_rows_;                                 // of a task
  std::array<kernels::BasicTile<Real>, kMostTilesTogether> tiles_;  // tiles_together
  RowsAhead ahead_;
};

// The tasks of all jobs, their sums, and the memory of both.
template <class Real>
class BackwardWork {
 public:
  BackwardWork(std::span<const BackwardCall<Real>> jobs, const Schedule<Real>& schedule)
      : jobs_(jobs), schedule_(schedule) {
    sums_.reserve(jobs.size());
    for (const BackwardCall<Real>& job : jobs) {
      sums_.emplace_back(job, *schedule.table, layout_);
      num_groups_ += sums_.back().division().num_groups();
      ends_.push_back(num_groups_);
    }
    const std::int64_t workers = std::min<std::int64_t>(schedule.workers, num_groups_);
    workers_ = {schedule, workers, layout_};
  }

  const Layout& layout() const { return layout_; }

  void run(std::byte* memory) {
    for (BackwardSums<Real>& sums : sums_) sums.take(memory);
    const auto start = [&](std::int64_t w) {
      return BackwardWorker<Real>(schedule_, workers_.parts, workers_.at(memory, w));
    };
    deal_out(num_groups_, schedule_.workers, start,
             [&](BackwardWorker<Real>& worker, std::int64_t group) { compute(group, worker); });
    for (const BackwardSums<Real>& sums : sums_) sums.write();
  }

 private:
  // Groups are numbered across all jobs.
  void compute(std::int64_t group, BackwardWorker<Real>& worker) const {
    const auto job = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), group) -
                                              ends_.begin());
    const BackwardDivision& division = sums_[job].division();
    division.for_each_task(group - (ends_[job] - division.num_groups()),
                           [&](const BackwardTask& task) {
                             const TaskSums<Real> sums = sums_[job].start(task);
                             worker.compute({jobs_[job], task, sums});
                           });
  }

  std::span<const BackwardCall<Real>> jobs_;
  const Schedule<Real>& schedule_;
  Layout layout_;
  std::vector<BackwardSums<Real>> sums_;
  std::vector<std::int64_t> ends_;  // the number of groups up to the end of each job
  std::int64_t num_groups_ = 0;
  Repeated<BackwardWorkerMemory<Real>> workers_;
};

}  // namespace

template <class Real>
std::size_t backward_bytes(const BackwardCall<Real>& job, const Schedule<Real>& schedule) {
  return Arena::bytes_for(BackwardWork<Real>({&job, 1}, schedule).layout());
}

template <class Real>
void backward(std::span<const BackwardCall<Real>> jobs, const Schedule<Real>& schedule,
              std::span<std::byte> workspace) {
  BackwardWork<Real> work(jobs, schedule);
  const Arena arena(work.layout(), workspace);
  work.run(arena.memory());
}

template std::size_t backward_bytes(const BackwardCall<float>&, const Schedule<float>&);
template std::size_t backward_bytes(const BackwardCall<double>&, const Schedule<double>&);
template void backward(std::span<const BackwardCall<float>>, const Schedule<float>&,
                       std::span<std::byte>);
template void backward(std::span<const BackwardCall<double>>, const Schedule<double>&,
                       std::span<std::byte>);

}}}  // namespace heed::v0::engine
