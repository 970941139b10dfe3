#include "attention/engine/panel_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "attention/engine/seen_tile.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 { namespace engine {

template <class Real>
PanelWeights<Real>::PanelWeights(const Schedule<Real>& schedule, const WeightsMemory<Real>& parts,
                                 std::byte* memory)
    : table_(*schedule.table),
      high_(parts.high.in(memory)),
      minus_low_(parts.minus_low.in(memory)),
      sum_(parts.sum.in(memory)),
      lse_(parts.lse.in(memory)) {}

template <class Real>
void PanelWeights<Real>::start(const PanelRows<Real>& rows, std::span<const Real> lse) {
  rows_ = &rows;
  std::copy(lse.begin(), lse.end(), lse_);
  std::copy(lse.begin(), lse.end(), high_);
  std::fill_n(minus_low_, rows.width(), Real{0});
  mark_rows_without_weights();
}

template <class Real>
void PanelWeights<Real>::start(const PanelRows<Real>& rows, const Request<Real>& request) {
  rows_ = &rows;
  for (std::int32_t r = 0; r < rows.width(); ++r) {
    const bool has_sink = request.sinks && r < rows.num_rows();
    high_[r] = has_sink ? (*request.sinks)(rows.head_place(r)) : -kInfinity<Real>;
    sum_[r] = high_[r] == -kInfinity<Real> ? Real{0} : Real{1};
  }
}

template <class Real>
void PanelWeights<Real>::add(const kernels::BasicTile<Real>& tile,
                             const WeightScratch<Real>& scratch) {
  score(tile, scratch);
  table_.add_to_sums(tile, rows_->panel(), scratch.scores, {high_, sum_});
}

template <class Real>
void PanelWeights<Real>::finish() {
  for (std::int32_t r = 0; r < rows_->num_rows(); ++r) {
    const double sum = sum_[r];
    lse_[r] = sum == 0 ? -kInfinity<Real> : static_cast<Real>(high_[r] + elementary::log(sum));
    minus_low_[r] = sum == 0 ? Real{0} : -static_cast<Real>(elementary::log2(sum));
  }
  mark_rows_without_weights();
}

template <class Real>
Real PanelWeights<Real>::lse_low(std::int32_t r) const {
  const double high = double{high_[r]} - double{lse_[r]};
  const double low = high - double{minus_low_[r]} * std::numbers::ln2;
  return std::isfinite(low) ? static_cast<Real>(low) : Real{0};
}

// Makes the weights of rows that see no key, and of rows that do not exist, 0, and those of rows
// whose denominator is not finite NaN.
template <class Real>
void PanelWeights<Real>::mark_rows_without_weights() {
  for (std::int32_t r = 0; r < rows_->width(); ++r) {
    if (r >= rows_->num_rows() || lse_[r] == -kInfinity<Real>) {
      high_[r] = kInfinity<Real>;
      minus_low_[r] = 0;
    } else if (lse_[r] == kInfinity<Real>) {
      high_[r] = std::numeric_limits<Real>::quiet_NaN();
    }
  }
}

template <class Real>
double PanelWeights<Real>::weight_of(double score, std::int32_t r) const {
  return elementary::exp(score - double{high_[r]}) * elementary::exp2(double{minus_low_[r]});
}

template <class Real>
kernels::BasicWeightTile<Real> PanelWeights<Real>::weigh(const kernels::BasicTile<Real>& tile,
                                                         const WeightScratch<Real>& scratch) const {
  score(tile, scratch);
  const kernels::BasicScoreTile<Real> place = rows_->score_tile(tile, scratch.scores);
  const kernels::BasicWeightTile<Real> weights{.vectors = rows_->panel().vectors,
                                               .first_key = tile.first_key,
                                               .begin = place.begin,
                                               .end = place.end,
                                               .weights = scratch.weights,
                                               .log2_weights = scratch.scores};
  table_.weigh(tile, rows_->panel(), {high_, minus_low_}, weights);
  return weights;
}

template <class Real>
void PanelWeights<Real>::score(const kernels::BasicTile<Real>& tile,
                               const WeightScratch<Real>& scratch) const {
  SeenKeys<Real> keys;
  if (rows_->score(SeenTile<Real>(tile, *rows_, keys, Unseen::kKept), scratch)) return;
  const kernels::BasicScoreTile<Real> hidden = rows_->score_tile(tile, scratch.scores);
  std::fill(hidden.scores + std::int64_t{hidden.begin} * hidden.width,
            hidden.scores + std::int64_t{hidden.end} * hidden.width, -kInfinity<Real>);
}

template class PanelWeights<float>;
template class PanelWeights<double>;

}}}  // namespace heed::v0::engine
