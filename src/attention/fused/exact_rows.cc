#include "attention/fused/exact_rows.h"

#include <algorithm>
#include <vector>

#include "attention/fused/weight_block.h"

namespace heed::inline v0::fused {

namespace {

class ExactRows {
 public:
  ExactRows(const Schedule& schedule, Workspace& workspace)
      : schedule_(schedule),
        reader_(schedule, workspace),
        rows_(schedule, workspace),
        weights_(schedule, workspace),
        out_(workspace.floats(schedule.panel_rows * schedule.value_dim)) {
    const std::int64_t keys = std::min<std::int64_t>(kernels::kTileKeys, schedule.kv_len);
    scratch_ = {{schedule, workspace}, workspace.floats(keys * schedule.panel_rows)};
    if (schedule.widens_query) {
      staged_query_ = workspace.floats(schedule.panel_rows * schedule.head_dim);
    }
  }

  void compute(const Block& block, std::span<const RowIndex> rows) {
    const Terms<float>& terms = *block.job.terms;
    reader_.start(block.job, block.batch, block.kv_head);
    rows_.start(block.job, block.batch, rows, staged_query_);
    weights_.start(rows_, terms);
    for_each_tile(terms, [&](const kernels::Tile& tile) { weights_.add(tile, scratch_); });
    weights_.finish();
    std::fill_n(out_, rows_.num_rows() * terms.value_dim, 0.0F);
    for_each_tile(terms, [&](const kernels::Tile& tile) {
      add_values(terms, weights_.weigh(tile, scratch_), tile);
    });
    write(block.job);
  }

 private:
  template <class Use>
  void for_each_tile(const Terms<float>& terms, const Use& use) {
    const std::int64_t end = rows_.panel().any_end;
    for (std::int64_t key = rows_.panel().any_begin / kernels::kTileKeys * kernels::kTileKeys;
         key < end; key += kernels::kTileKeys) {
      const std::int64_t last = std::min(key + kernels::kTileKeys, terms.shape.kv_len);
      use(reader_.read({key, last}));
    }
  }

  // out[r] += Σ weight · dropout · value over the keys of the tile that row r sees.
  void add_values(const Terms<float>& terms, const kernels::WeightTile& weights,
                  const kernels::Tile& tile) {
    const std::int32_t width = rows_.width();
    ScorePosition at{.batch = static_cast<std::int32_t>(rows_.batch())};
    for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
      float* const out = out_ + r * terms.value_dim;
      at.head = static_cast<std::int32_t>(rows_.head(r));
      at.q_idx = static_cast<std::int32_t>(rows_.query(r) + terms.shape.query_offset);
      for (std::int32_t j = weights.begin; j < weights.end; ++j) {
        if (weights.log2_weights[j * width + r] == -kInfinity) continue;
        at.kv_idx = tile.first_key + j;
        const float weight =
            weights.weights[j * width + r] * static_cast<float>(terms.dropout.factor(at));
        const float* const value = tile.value + j * tile.value_stride;
        for (std::int64_t d = 0; d < terms.value_dim; ++d) out[d] += weight * value[d];
      }
    }
  }

  void write(const Job& job) const {
    const std::int64_t value_dim = job.terms->value_dim;
    for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
      std::byte* const row = job.out.row(rows_.batch(), rows_.head(r), rows_.query(r));
      schedule_.table->narrow(job.out.type, out_ + r * value_dim, value_dim, row);
      if (job.lse.empty()) continue;
      job.lse(rows_.batch(), rows_.head(r), rows_.query(r)) = weights_.lse(r);
    }
  }

  const Schedule& schedule_;
  TileReader reader_;
  PanelRows rows_;
  PanelWeights weights_;
  WeightScratch scratch_;
  float* staged_query_ = nullptr;  // [panel_rows][head_dim]
  float* out_;                     // [panel_rows][value_dim]
};

}  // namespace

Schedule make_exact_schedule(const Schedule& schedule) {
  Schedule exact = schedule;
  exact.panel_rows = std::max(schedule.panel_rows, schedule.table->lanes);
  exact.panels_per_block = 1;
  exact.keeps_scores = true;
  exact.key_chunks = 1;
  return exact;
}

void compute_exactly(const Block& block, const Schedule& schedule, std::span<const RowIndex> rows) {
  const Schedule exact = make_exact_schedule(schedule);
  auto memory = memory_for([&](Workspace& all) { ExactRows(exact, all); });
  Workspace workspace = workspace_in(memory);
  ExactRows(exact, workspace).compute(block, rows);
}

}  // namespace heed::inline v0::fused
