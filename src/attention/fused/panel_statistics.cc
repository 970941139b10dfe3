#include "attention/fused/panel_statistics.h"

#include <algorithm>
#include <limits>
#include <numbers>

namespace heed::inline v0::fused {

PanelStatistics::PanelStatistics(const Schedule& schedule, std::int64_t top_k, Workspace& workspace)
    : table_(*schedule.table), entropy_sums_(workspace.floats(schedule.panel_rows)) {
  // The largest weight is the first of the largest, so one is always kept.
  const std::int64_t count = std::max<std::int64_t>(std::min(top_k, schedule.kv_len), 1);
  largest_ = {.count = static_cast<std::int32_t>(count),
              .weights = workspace.floats(count * schedule.panel_rows),
              .keys = workspace.take<std::int32_t>(count * schedule.panel_rows)};
}

void PanelStatistics::start(std::int32_t width) {
  width_ = width;
  std::fill_n(entropy_sums_, width, 0.0F);
  std::fill_n(largest_.weights, std::int64_t{largest_.count} * width, 0.0F);
  std::fill_n(largest_.keys, std::int64_t{largest_.count} * width, -1);
}

void PanelStatistics::add(const kernels::WeightTile& tile) {
  table_.add_entropy(tile, entropy_sums_);
  table_.keep_largest(tile, largest_);
}

void PanelStatistics::write(const WeightBlock& block, std::size_t panel,
                            AttentionStatistics& statistics) const {
  const PanelRows& rows = block.rows(panel);
  const Shape& shape = statistics.lse.shape();
  for (std::int32_t r = 0; r < rows.num_rows(); ++r) {
    const std::int64_t row = (rows.batch() * shape[1] + rows.head(r)) * shape[2] + rows.query(r);
    write_row(r, block.lse(panel, r), row, statistics);
  }
}

void PanelStatistics::write_row(std::int32_t r, float lse, std::int64_t row,
                                AttentionStatistics& statistics) const {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  // Whether the row sees nothing that is not a finite number.
  const bool is_sound = lse < kInfinity;
  const auto weight_at = [&](std::int64_t i) {
    if (!is_sound) return kNaN;
    return i < largest_.count ? largest_.weights[i * width_ + r] : 0.0F;
  };
  const auto key_at = [&](std::int64_t i) -> std::int64_t {
    return is_sound && i < largest_.count ? largest_.keys[i * width_ + r] : -1;
  };
  const auto entropy = static_cast<float>(0 - entropy_sums_[r] * std::numbers::ln2);
  statistics.lse.data()[row] = lse;
  statistics.entropy.data()[row] = is_sound ? entropy : kNaN;
  statistics.max_weight.data()[row] = weight_at(0);
  statistics.max_key.data()[row] = key_at(0);
  const std::int64_t top_k = statistics.top_keys.extent(-1);
  for (std::int64_t i = 0; i < top_k; ++i) {
    statistics.top_weights.data()[row * top_k + i] = weight_at(i);
    statistics.top_keys.data()[row * top_k + i] = key_at(i);
  }
}

}  // namespace heed::inline v0::fused
