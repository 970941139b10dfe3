#include "attention/engine/panel_statistics.h"

#include <algorithm>
#include <limits>
#include <numbers>

namespace heed { inline namespace v0 { namespace engine {

template <class Real>
PanelStatistics<Real>::PanelStatistics(const Schedule<Real>& schedule,
                                       const StatisticsMemory<Real>& parts, std::byte* memory)
    : table_(*schedule.table),
      entropy_sums_(parts.entropy_sums.in(memory)),
      largest_{
          .count = static_cast<std::int32_t>(parts.largest_weights.count / schedule.panel_rows),
          .weights = parts.largest_weights.in(memory),
          .keys = parts.largest_keys.in(memory)} {}

template <class Real>
void PanelStatistics<Real>::start(std::int32_t width) {
  width_ = width;
  std::fill_n(entropy_sums_, width, Real{0});
  std::fill_n(largest_.weights, std::int64_t{largest_.count} * width, Real{0});
  std::fill_n(largest_.keys, std::int64_t{largest_.count} * width, -1);
}

template <class Real>
void PanelStatistics<Real>::add(const kernels::BasicWeightTile<Real>& tile) {
  table_.add_entropy(tile, entropy_sums_);
  table_.keep_largest(tile, largest_);
}

template <class Real>
void PanelStatistics<Real>::write(const WeightBlock<Real>& block, std::size_t panel,
                                  BasicAttentionStatistics<Real>& statistics) const {
  const PanelRows<Real>& rows = block.rows(panel);
  const Shape& shape = statistics.lse.shape();
  for (std::int32_t r = 0; r < rows.num_rows(); ++r) {
    const std::int64_t row = (rows.batch() * shape[1] + rows.head(r)) * shape[2] + rows.query(r);
    write_row(r, block.weights(panel).lse(r), row, statistics);
  }
}

template <class Real>
void PanelStatistics<Real>::write_row(std::int32_t r, Real lse, std::int64_t row,
                                      BasicAttentionStatistics<Real>& statistics) const {
  constexpr Real kNaN = std::numeric_limits<Real>::quiet_NaN();
  // True if all scores that the row sees are finite.
  const bool is_sound = lse < kInfinity<Real>;
  const auto weight_at = [&](std::int64_t i) {
    if (!is_sound) return kNaN;
    return i < largest_.count ? largest_.weights[i * width_ + r] : Real{0};
  };
  const auto key_at = [&](std::int64_t i) -> std::int64_t {
    return is_sound && i < largest_.count ? largest_.keys[i * width_ + r] : -1;
  };
  const auto entropy = static_cast<Real>(0 - entropy_sums_[r] * std::numbers::ln2);
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

template class PanelStatistics<float>;
template class PanelStatistics<double>;

}}}  // namespace heed::v0::engine
