#include "attention/fused/statistics.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/fused/panel_statistics.h"
#include "attention/fused/weight_block.h"
#include "heed/parallel.h"

namespace heed::inline v0::fused {

namespace {

// What a thread works with.
class StatisticsWorker {
 public:
  StatisticsWorker(const Schedule& schedule, std::int64_t top_k, Workspace& workspace)
      : table_(*schedule.table), block_(schedule, workspace) {
    for (std::int32_t i = 0; i < schedule.panels_per_block; ++i) {
      panels_.emplace_back(schedule, top_k, workspace);
    }
  }

  // Computes the statistics of these rows, which share a key head, and adds their weights to
  // masses[batch, head], [kv_len].
  void compute(const Job& job, std::int64_t batch, std::span<const RowIndex> rows,
               TensorView<float> masses, AttentionStatistics& statistics) {
    block_.start(job, batch, rows);
    for (std::size_t i = 0; i < block_.num_panels(); ++i) panels_[i].start(block_.rows(i).width());
    block_.visit([&](std::size_t i, const kernels::WeightTile& tile) {
      panels_[i].add(tile);
      add_mass(tile, block_.rows(i), masses);
    });
    for (std::size_t i = 0; i < block_.num_panels(); ++i) panels_[i].write(block_, i, statistics);
  }

 private:
  // Rows of one head lie side by side.
  void add_mass(const kernels::WeightTile& tile, const PanelRows& rows,
                TensorView<float> masses) const {
    std::int32_t last = 0;
    for (std::int32_t first = 0; first < rows.num_rows(); first = last) {
      while (last < rows.num_rows() && rows.head(last) == rows.head(first)) ++last;
      float* mass = masses.select(0, rows.batch()).select(0, rows.head(first)).data();
      table_.add_mass(tile, first, last, mass + tile.first_key);
    }
  }

  const kernels::KernelTable& table_;
  WeightBlock block_;
  std::vector<PanelStatistics> panels_;
};

class AllRows {
 public:
  AllRows(const Job& job, const Schedule& schedule, AttentionStatistics& statistics)
      : job_(job),
        schedule_(schedule),
        shape_(job.terms->shape),
        statistics_(statistics),
        segment_queries_(queries_per_segment(shape_.q_len, schedule.panel_rows)),
        num_segments_(
            std::max<std::int64_t>((shape_.q_len + segment_queries_ - 1) / segment_queries_, 1)),
        later_masses_({num_segments_ - 1, shape_.batch, shape_.num_heads, shape_.kv_len}) {}

  void compute() {
    const std::int64_t kv_heads = job_.terms->num_kv_heads();
    const std::int64_t per_segment = shape_.batch * kv_heads;
    parallel_for(0, per_segment * num_segments_, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        // The last queries of a causal mask see the most keys: they go first.
        const std::int64_t segment = num_segments_ - 1 - i / per_segment;
        compute_segment(segment, i % per_segment / kv_heads, i % kv_heads);
      }
    });
    for (std::int64_t segment = 1; segment < num_segments_; ++segment) {
      const float* mass = masses_of(segment).data();
      for (float& sum : statistics_.key_mass.elements()) sum += *mass++;
    }
  }

 private:
  // [batch, num_heads, kv_len]
  TensorView<float> masses_of(std::int64_t segment) {
    return segment == 0 ? statistics_.key_mass.view() : later_masses_.view().select(0, segment - 1);
  }

  void compute_segment(std::int64_t segment, std::int64_t batch, std::int64_t kv_head) {
    const std::int64_t group = job_.terms->heads_per_kv_head;
    const TensorView<float> masses = masses_of(segment);
    const std::int64_t top_k = statistics_.top_keys.extent(-1);
    auto memory = memory_for([&](Workspace& all) { StatisticsWorker(schedule_, top_k, all); });
    Workspace workspace = workspace_in(memory);
    StatisticsWorker worker(schedule_, top_k, workspace);
    const std::int64_t first_query = segment * segment_queries_;
    const std::int64_t queries = std::min(segment_queries_, shape_.q_len - first_query);
    std::vector<RowIndex> rows;
    for (std::int64_t i = 0; i < group * queries; ++i) {
      rows.push_back({static_cast<std::int32_t>(kv_head * group + i / queries),
                      static_cast<std::int32_t>(first_query + i % queries)});
      if (static_cast<std::int64_t>(rows.size()) < schedule_.block_rows()) continue;
      worker.compute(job_, batch, rows, masses, statistics_);
      rows.clear();
    }
    if (!rows.empty()) worker.compute(job_, batch, rows, masses, statistics_);
  }

  const Job& job_;
  const Schedule& schedule_;
  ScoreShape shape_;
  AttentionStatistics& statistics_;
  std::int64_t segment_queries_;
  std::int64_t num_segments_;
  Tensor<float> later_masses_;  // [segment − 1, batch, num_heads, kv_len]
};

}  // namespace

void statistics_of(const Job& job, const Schedule& schedule, AttentionStatistics& statistics) {
  AllRows(job, schedule, statistics).compute();
}

}  // namespace heed::inline v0::fused
