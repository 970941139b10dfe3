#include "attention/fused/panel_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heed::inline v0::fused {

PanelWeights::PanelWeights(const Schedule& schedule, Workspace& workspace)
    : table_(*schedule.table),
      high_(workspace.floats(schedule.panel_rows)),
      minus_low_(workspace.floats(schedule.panel_rows)),
      sum_(workspace.floats(schedule.panel_rows)),
      lse_(workspace.floats(schedule.panel_rows)) {}

void PanelWeights::start(const PanelRows& rows, std::span<const float> lse) {
  rows_ = &rows;
  std::copy(lse.begin(), lse.end(), lse_);
  std::copy(lse.begin(), lse.end(), high_);
  std::fill_n(minus_low_, rows.width(), 0.0F);
  silence();
}

void PanelWeights::start(const PanelRows& rows, const Terms<float>& terms) {
  rows_ = &rows;
  for (std::int32_t r = 0; r < rows.width(); ++r) {
    const bool has_sink = terms.sinks && r < rows.num_rows();
    high_[r] = has_sink ? (*terms.sinks)(rows.head(r)) : -kInfinity;
    sum_[r] = high_[r] == -kInfinity ? 0.0F : 1.0F;
  }
}

void PanelWeights::add(const kernels::Tile& tile, const WeightScratch& scratch) {
  score(tile, scratch);
  kernels::Panel panel = rows_->panel();
  table_.add_to_sums(tile, panel, scratch.scores, {high_, sum_});
}

void PanelWeights::finish() {
  for (std::int32_t r = 0; r < rows_->num_rows(); ++r) {
    const double sum = sum_[r];
    lse_[r] = sum == 0 ? -kInfinity : static_cast<float>(high_[r] + std::log(sum));
    minus_low_[r] = sum == 0 ? 0.0F : -static_cast<float>(std::log2(sum));
  }
  silence();
}

// Makes rows that see nothing, and those that do not exist, weigh nothing; and rows whose
// denominator is not finite NaN.
void PanelWeights::silence() {
  for (std::int32_t r = 0; r < rows_->width(); ++r) {
    if (r >= rows_->num_rows() || lse_[r] == -kInfinity) {
      high_[r] = kInfinity;
      minus_low_[r] = 0;
    } else if (lse_[r] == kInfinity) {
      high_[r] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

double PanelWeights::weight_of(double score, std::int32_t r) const {
  return std::exp(score - double{high_[r]}) * std::exp2(double{minus_low_[r]});
}

kernels::WeightTile PanelWeights::weigh(const kernels::Tile& tile,
                                        const WeightScratch& scratch) const {
  score(tile, scratch);
  kernels::Panel panel = rows_->panel();
  const detail::ScoreTile place = rows_->score_tile(tile, scratch.scores);
  const kernels::WeightTile weights{.vectors = panel.vectors,
                                    .first_key = tile.first_key,
                                    .begin = place.begin,
                                    .end = place.end,
                                    .weights = scratch.weights,
                                    .log2_weights = scratch.scores};
  table_.weigh(tile, panel, {high_, minus_low_}, weights);
  return weights;
}

void PanelWeights::score(const kernels::Tile& tile, const WeightScratch& scratch) const {
  if (rows_->score(tile, scratch)) return;
  const detail::ScoreTile hidden = rows_->score_tile(tile, scratch.scores);
  std::fill(hidden.scores + std::int64_t{hidden.begin} * hidden.width,
            hidden.scores + std::int64_t{hidden.end} * hidden.width, -kInfinity);
}

}  // namespace heed::inline v0::fused
