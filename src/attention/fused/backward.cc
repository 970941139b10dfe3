#include "attention/fused/backward.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "attention/fused/backward_sums.h"
#include "attention/fused/exact_rows.h"
#include "attention/fused/panel_gradients.h"
#include "attention/fused/tile_reader.h"
#include "attention/fused/weight_block.h"
#include "heed/cancellation.h"
#include "heed/parallel.h"

namespace heed::inline v0::fused {

namespace {

using kernels::kTileKeys;

// What the panels of a block may take together, in bytes: a part of a second-level cache.
constexpr std::int64_t kBlockBytes = 512 * 1024;
constexpr std::int64_t kPanelsPerBlock = 4;

// Some rows whose weights take two passes.
struct ExactPanel {
  ExactPanel(const Schedule& schedule, Workspace& workspace)
      : rows(schedule, workspace), weights(schedule, workspace), gradients(schedule, workspace) {}

  PanelRows rows;
  PanelWeights weights;
  PanelGradients gradients;
};

// What one thread works with.
class BackwardWorker {
 public:
  BackwardWorker(const Terms<float>& terms, const Schedule& schedule, Workspace& workspace)
      : schedule_(schedule), reader_(schedule, workspace) {
    const auto panels = static_cast<std::size_t>(schedule.panels_per_block);
    panels_.reserve(panels);
    for (std::size_t i = 0; i < panels; ++i) panels_.emplace_back(schedule, workspace);
    scratch_.scores = ScoreScratch(schedule, workspace);
    // As large as the scores.
    const std::int64_t keys = (std::min<std::int64_t>(kTileKeys, schedule.kv_len) + 7) / 8 * 8;
    const auto another = [&] { return workspace.floats(keys * schedule.panel_rows); };
    scratch_.out = workspace.floats(schedule.value_dim * schedule.panel_rows);
    scratch_.grad_scores = another();
    if (!terms.dropout.keeps_everything()) scratch_.dropout = another();
    if (terms.softcap != 0 || terms.score_mod) scratch_.scores.derivatives = another();
  }

  void compute(const BackwardJob& job, const BackwardTask& task, const TaskSums& sums) {
    job_ = &job;
    reader_.start(job.forward, task.batch, task.kv_head);
    const std::int64_t group = job.terms().heads_per_kv_head;
    const RowRange rows{task.queries.begin * group, task.queries.end * group};
    for (std::int64_t first = rows.begin; first < rows.end; first += schedule_.block_rows()) {
      compute_block(task, {first, std::min(first + schedule_.block_rows(), rows.end)}, sums);
    }
  }

 private:
  void compute_block(const BackwardTask& task, RowRange rows, const TaskSums& sums) {
    std::size_t count = 0;
    const PanelTask panel_task{*job_, task, sums};
    for (std::int64_t first = rows.begin; first < rows.end; first += schedule_.panel_rows) {
      const RowRange some{first, std::min<std::int64_t>(first + schedule_.panel_rows, rows.end)};
      panels_[count++].start(panel_task, some, scratch_);
    }
    const std::span<PanelGradients> panels(panels_.data(), count);
    RowRange keys{std::numeric_limits<std::int64_t>::max(), 0};
    for (const PanelGradients& panel : panels) {
      keys.begin = std::min<std::int64_t>(keys.begin, panel.rows().panel().any_begin);
      keys.end = std::max<std::int64_t>(keys.end, panel.rows().panel().any_end);
    }
    for_each_tile(keys, [&](RowRange some) { add_tile(some, panels); });
    for (const PanelGradients& panel : panels) panel.write(*job_);
    for (const PanelGradients& panel : panels) compute_exactly(panel_task, panel.lost_rows());
  }

  // Adds rows that panels could not take.
  void compute_exactly(const PanelTask& task, std::span<const RowIndex> rows) {
    if (rows.empty()) return;
    const Schedule schedule = make_exact_schedule(schedule_);
    auto memory = memory_for([&](Workspace& all) { ExactPanel(schedule, all); });
    Workspace workspace = workspace_in(memory);
    ExactPanel panel(schedule, workspace);
    panel.rows.start(job_->forward, task.task.batch, rows, nullptr);
    panel.weights.start(panel.rows, job_->terms());
    const RowRange keys{panel.rows.panel().any_begin, panel.rows.panel().any_end};
    for_each_tile(keys, [&](RowRange some) {
      panel.weights.add(reader_.read(some), {scratch_.scores, nullptr});
    });
    panel.weights.finish();
    panel.gradients.start(task, rows, panel.weights, scratch_);
    for_each_tile(keys, [&](RowRange some) { add_tile(some, {&panel.gradients, 1}); });
    panel.gradients.write(*job_);
  }

  template <class Use>
  void for_each_tile(RowRange keys, const Use& use) const {
    for (std::int64_t key = keys.begin / kTileKeys * kTileKeys; key < keys.end; key += kTileKeys) {
      check_cancelled();
      use({key, std::min<std::int64_t>(key + kTileKeys, job_->terms().shape.kv_len)});
    }
  }

  void add_tile(RowRange keys, std::span<PanelGradients> panels) {
    const kernels::Tile place{.first_key = static_cast<std::int32_t>(keys.begin),
                              .num_keys = static_cast<std::int32_t>(keys.end - keys.begin)};
    const auto sees = [&](const PanelGradients& panel) { return panel.rows().sees(place); };
    if (std::none_of(panels.begin(), panels.end(), sees)) return;
    const kernels::Tile tile = reader_.read(keys);
    const bool has_finite_keys = schedule_.table->backward->is_finite(
        tile.key, tile.key_stride, tile.num_keys, schedule_.head_dim);
    for (PanelGradients& panel : panels) panel.add(tile, has_finite_keys, scratch_);
  }

  const Schedule& schedule_;
  const BackwardJob* job_ = nullptr;
  TileReader reader_;
  std::vector<PanelGradients> panels_;
  GradientScratch scratch_;
};

// The tasks of all jobs, and where they add.
class Work {
 public:
  Work(std::span<const BackwardJob> jobs, const Schedule& schedule) : jobs_(jobs) {
    divisions_.reserve(jobs.size());
    ends_.reserve(jobs.size());
    for (const BackwardJob& job : jobs) {
      divisions_.emplace_back(job, schedule.panel_rows);
      num_groups_ += divisions_.back().num_groups();
      ends_.push_back(num_groups_);
    }
  }

  std::int64_t num_groups() const { return num_groups_; }

  // To be called before what follows.
  void make_sums(std::int32_t lanes, Workspace& workspace) {
    sums_.clear();
    sums_.reserve(jobs_.size());
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      sums_.emplace_back(jobs_[i], divisions_[i], lanes, workspace);
    }
  }

  // The groups of all jobs are numbered through.
  void compute(std::int64_t group, BackwardWorker& worker) {
    const auto job = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), group) -
                                              ends_.begin());
    const BackwardDivision& division = divisions_[job];
    division.for_each_task(group - (ends_[job] - division.num_groups()),
                           [&](const BackwardTask& task) {
                             worker.compute(jobs_[job], task, sums_[job].start(task));
                           });
  }

  void write() const {
    for (const BackwardSums& sums : sums_) sums.write();
  }

 private:
  std::span<const BackwardJob> jobs_;
  std::vector<BackwardDivision> divisions_;
  std::vector<std::int64_t> ends_;  // the number after each job's last group
  std::vector<BackwardSums> sums_;
  std::int64_t num_groups_ = 0;
};

}  // namespace

Schedule make_backward_schedule(const kernels::KernelTable& table, const Terms<float>& terms,
                                const AttentionShapes& shapes, int threads) {
  Schedule schedule = make_schedule(table, terms, shapes, threads);
  schedule.key_chunks = 1;
  const std::int64_t panel_bytes = static_cast<std::int64_t>(sizeof(float)) * schedule.panel_rows *
                                   (3 * schedule.head_dim + 2 * schedule.value_dim + 1);
  // Where several threads take part, forward blocks are small; here a thread has a head to itself.
  const std::int64_t panels = std::max<std::int64_t>(
      1, (terms.shape.q_len * terms.heads_per_kv_head - 1) / schedule.panel_rows + 1);
  schedule.panels_per_block = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(kBlockBytes / panel_bytes, 1, std::min(panels, kPanelsPerBlock)));
  return schedule;
}

void backward(std::span<const BackwardJob> jobs, const Schedule& schedule) {
  Work work(jobs, schedule);
  const std::int64_t workers = std::min<std::int64_t>(schedule.workers, work.num_groups());
  if (workers == 0) return;
  const std::int32_t lanes = schedule.table->lanes;
  const Terms<float>& terms = jobs.front().terms();
  Workspace measured(kMeasureOnly);
  work.make_sums(lanes, measured);
  for (std::int64_t w = 0; w < workers; ++w) BackwardWorker(terms, schedule, measured);
  auto memory =
      Tensor<float>::uninitialized({static_cast<std::int64_t>(measured.bytes() / sizeof(float))});
  Workspace workspace(reinterpret_cast<std::byte*>(memory.data()));
  work.make_sums(lanes, workspace);
  std::vector<BackwardWorker> all_workers;
  all_workers.reserve(static_cast<std::size_t>(workers));
  for (std::int64_t w = 0; w < workers; ++w) all_workers.emplace_back(terms, schedule, workspace);

  std::atomic<std::int64_t> next = 0;
  parallel_for(0, workers, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t w = first; w < last; ++w) {
      BackwardWorker& worker = all_workers[static_cast<std::size_t>(w)];
      for (std::int64_t group = next++; group < work.num_groups(); group = next++) {
        work.compute(group, worker);
      }
    }
  });
  work.write();
}

BackwardJob make_backward_job(const BackwardTensors& tensors, const Terms<float>& terms,
                              RowRange batches) {
  BackwardJob job;
  job.forward.terms = &terms;
  job.forward.query = rows_of(tensors.query);
  job.forward.key = rows_of(tensors.key);
  job.forward.value = rows_of(tensors.value);
  job.forward.batches = batches;
  job.grad_out = rows_of(tensors.grad_out);
  job.out = tensors.out;
  job.lse = tensors.lse;
  return job;
}

AttentionGradients<float> backward(const Schedule& schedule, const BackwardTensors& tensors,
                                   const Terms<float>& terms, const Shape* bias_shape) {
  AttentionGradients<float> gradients;
  gradients.query = Tensor<float>::uninitialized(tensors.query.shape());
  gradients.key = Tensor<float>(tensors.key.shape());
  gradients.value = Tensor<float>(tensors.value.shape());
  BackwardJob job = make_backward_job(tensors, terms, {0, terms.shape.batch});
  job.gradients.query = gradients.query;
  job.gradients.key = gradients.key;
  job.gradients.value = gradients.value;
  if (terms.alibi_slopes) {
    gradients.alibi_slopes = Tensor<float>(terms.alibi_slopes->shape());
    job.gradients.alibi_slopes = gradients.alibi_slopes.data();
  }
  if (terms.sinks) {
    gradients.sinks = Tensor<float>(terms.sinks->shape());
    job.gradients.sinks = gradients.sinks.data();
  }
  if (bias_shape != nullptr) {
    gradients.bias = Tensor<float>(*bias_shape);
    if (!gradients.bias.empty()) {
      job.gradients.bias = gradients.bias.view().broadcast_to(terms.bias->shape());
    }
  }
  backward({&job, 1}, schedule);
  return gradients;
}

}  // namespace heed::inline v0::fused
