#include "attention/fused/panel_gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "attention/fused/exact_rows.h"

namespace heed::inline v0::fused {

namespace {

std::int64_t whole_vectors(std::int64_t dim, std::int64_t lanes) {
  return (dim + lanes - 1) / lanes * lanes;
}

// Writes factor · row as row r of the blocks at `data`; null: a row of zeros.
void fill_row(const kernels::RowBlocks& blocks, std::int64_t block_width, std::int32_t r,
              const float* row, RowRange dims, float factor, float* data) {
  const std::int64_t padded = dims.end;
  for (std::int64_t first = 0; first < padded; first += block_width) {
    const std::int64_t width = std::min(block_width, padded - first);
    float* target = data + first * blocks.capacity + r * width;
    const std::int64_t count =
        row == nullptr ? 0 : std::clamp<std::int64_t>(dims.begin - first, 0, width);
    for (std::int64_t i = 0; i < count; ++i) target[i] = factor * row[first + i];
    std::fill(target + count, target + width, 0.0F);
  }
}

// Whether weights cannot be told from an lse.
bool is_lost(float lse) { return std::abs(lse) > kLargestLse && std::abs(lse) < kInfinity; }

}  // namespace

PanelGradients::PanelGradients(const Schedule& schedule, Workspace& workspace)
    : schedule_(schedule),
      table_(*schedule.table->backward),
      rows_(schedule, workspace),
      grad_out_(workspace.floats(schedule.panel_rows * schedule.value_dim)),
      grad_query_(workspace.floats(schedule.panel_rows * schedule.head_dim)),
      lse_(workspace.floats(schedule.panel_rows)),
      minus_m_(workspace.floats(schedule.panel_rows)),
      threshold_(workspace.floats(schedule.panel_rows)),
      delta_(workspace.floats(schedule.panel_rows)),
      query_rows_(workspace.floats(schedule.panel_rows *
                                   whole_vectors(schedule.head_dim, schedule.table->lanes))),
      grad_out_rows_(workspace.floats(schedule.panel_rows *
                                      whole_vectors(schedule.value_dim, schedule.table->lanes))) {}

void PanelGradients::start(const PanelTask& task, RowRange rows, const GradientScratch& scratch) {
  rows_.start(task.job.forward, task.task.batch, task.task.kv_head, rows, nullptr);
  exact_ = nullptr;
  find_lost_rows(task);
  start(task, scratch);
}

void PanelGradients::start(const PanelTask& task, std::span<const RowIndex> rows,
                           const PanelWeights& weights, const GradientScratch& scratch) {
  rows_.start(task.job.forward, task.task.batch, rows, nullptr);
  exact_ = &weights;
  num_lost_ = 0;
  start(task, scratch);
}

void PanelGradients::start(const PanelTask& task, const GradientScratch& scratch) {
  const BackwardJob& job = task.job;
  const Terms<float>& terms = job.terms();
  task_ = task.task;
  sums_ = task.sums;
  first_head_ = task_.kv_head * terms.heads_per_kv_head;
  factor_ = terms.scale;
  modifies_scores_ = fused::modifies_scores(terms);
  query_panel_ = rows_.panel();
  query_panel_.state = {.minus_m = minus_m_, .threshold = threshold_, .out = grad_query_};
  chunk_ = -1;
  query_panel_.value_dim = query_panel_.head_dim;
  grad_out_panel_ = rows_.panel();
  grad_out_panel_.query = grad_out_;
  grad_out_panel_.head_dim = grad_out_panel_.value_dim;
  std::fill_n(grad_query_, std::int64_t{rows_.width()} * query_panel_.head_dim, 0.0F);
  start_rows(job);
  find_delta(job, scratch.out);
  if (terms.sinks) add_sinks(job);
}

void PanelGradients::find_lost_rows(const PanelTask& task) {
  num_lost_ = 0;
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    if (!is_lost(task.job.lse(rows_.batch(), rows_.head(r), rows_.query(r)))) continue;
    lost_rows_[static_cast<std::size_t>(num_lost_++)] = {static_cast<std::int32_t>(rows_.head(r)),
                                                         static_cast<std::int32_t>(rows_.query(r))};
  }
}

// What is known of the rows before a key is seen.
void PanelGradients::start_rows(const BackwardJob& job) {
  const Terms<float>& terms = job.terms();
  const std::int32_t lanes = schedule_.table->lanes;
  const std::int64_t block_width = std::int64_t{table_.column_vectors} * lanes;
  const auto vectors = [lanes](std::int64_t dim) {
    return static_cast<std::int32_t>((dim + lanes - 1) / lanes);
  };
  query_blocks_ = {query_rows_, rows_.num_rows(), rows_.width(), vectors(terms.head_dim)};
  grad_out_blocks_ = {grad_out_rows_, rows_.num_rows(), rows_.width(), vectors(terms.value_dim)};
  const RowRange head_dims{terms.head_dim, whole_vectors(terms.head_dim, lanes)};
  const RowRange value_dims{terms.value_dim, whole_vectors(terms.value_dim, lanes)};
  std::array<const float*, kernels::kMaxPanelWidth> grads{};
  for (std::int32_t r = 0; r < rows_.width(); ++r) {
    const float* query = nullptr;
    const float* grad = nullptr;
    lse_[r] = kInfinity;
    const float lse = r < rows_.num_rows() ? lse_of(job, r) : -kInfinity;
    // What a row that sees nothing holds must not reach a key.
    if (lse != -kInfinity) {
      query = row_of(job.forward.query, r);
      grad = row_of(job.grad_out, r);
      lse_[r] = lse == kInfinity ? std::numeric_limits<float>::quiet_NaN() : lse;
    }
    grads[static_cast<std::size_t>(r)] = grad;
    fill_row(query_blocks_, block_width, r, query, head_dims, factor_, query_rows_);
    fill_row(grad_out_blocks_, block_width, r, grad, value_dims, 1, grad_out_rows_);
  }
  schedule_.table->pack(grads.data(), rows_.width(), grad_out_panel_.head_dim, 1, grad_out_);
  has_finite_rows_ = table_.is_finite(query_rows_, 0, 1, head_dims.end * rows_.width()) &&
                     table_.is_finite(grad_out_rows_, 0, 1, value_dims.end * rows_.width());
}

const float* PanelGradients::row_of(const Rows& rows, std::int32_t r) const {
  return reinterpret_cast<const float*>(rows.row(task_.batch, rows_.head(r), rows_.query(r)));
}

// A lost row is here like one that sees nothing.
float PanelGradients::lse_of(const BackwardJob& job, std::int32_t r) const {
  const float lse = job.lse(task_.batch, rows_.head(r), rows_.query(r));
  return exact_ == nullptr && is_lost(lse) ? -kInfinity : lse;
}

void PanelGradients::find_delta(const BackwardJob& job, float* out) {
  std::array<const float*, kernels::kMaxPanelWidth> rows{};
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    rows[static_cast<std::size_t>(r)] = row_of(rows_of(job.out), r);
  }
  const std::int32_t value_dim = grad_out_panel_.head_dim;
  schedule_.table->pack(rows.data(), rows_.width(), value_dim, 1, out);
  table_.find_delta(grad_out_, out, rows_.width(), value_dim, delta_);
}

// A sink is one more logit, whose weight reaches no value.
void PanelGradients::add_sinks(const BackwardJob& job) const {
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    if (lse_of(job, r) == -kInfinity) continue;
    sums_.sinks[rows_.head(r) - first_head_] -= sink_weight(job, r) * double{delta_[r]};
  }
}

double PanelGradients::sink_weight(const BackwardJob& job, std::int32_t r) const {
  const double sink = (*job.terms().sinks)(rows_.head(r));
  return exact_ == nullptr ? std::exp(sink - double{lse_of(job, r)}) : exact_->weight_of(sink, r);
}

void PanelGradients::add(const kernels::Tile& tile, bool has_finite_keys,
                         const GradientScratch& scratch) {
  float* weights = scratch.scores.scores;
  float* grads = scratch.grad_scores;
  if (!rows_.sees(tile) || !weigh(tile, scratch)) return;
  const bool drops = query_panel_.dropout != nullptr;
  if (drops) {
    table_.fill_dropout(tile, query_panel_, scratch.dropout);
  } else {
    add_values(tile, weights);
  }
  table_.grad_scores(tile, grad_out_panel_,
                     {weights, delta_, drops ? scratch.dropout : nullptr, modifies_scores_}, grads);
  if (drops) {
    table_.multiply(tile, query_panel_, scratch.dropout, weights);
    add_values(tile, weights);
  }
  if (modifies_scores_) add_to_options(rows_.score_tile(tile, weights), grads);
  if (scratch.scores.derivatives != nullptr) {
    table_.multiply(tile, query_panel_, scratch.scores.derivatives, grads);
  }
  table_.add_to_query(tile, query_panel_, !has_finite_keys, grads);
  table_.add_to_keys(tile, query_panel_, grads, query_blocks_, !has_finite_rows_,
                     {sums_.key + tile.first_key * sums_.key_stride, sums_.key_stride});
}

// Returns whether any weight is not 0 for being hidden.
bool PanelGradients::weigh(const kernels::Tile& tile, const GradientScratch& all_scratch) {
  const ScoreScratch& scratch = all_scratch.scores;
  if (exact_ != nullptr) {
    WeightScratch exact{scratch, scratch.scores};
    exact.scores = all_scratch.grad_scores;
    exact_->weigh(tile, exact);
    return true;
  }
  if (!modifies_scores_) {
    begin_chunk(tile.first_key / kernels::kChunkKeys);
    table_.weigh(tile, query_panel_, lse_, scratch.scores);
    return true;
  }
  if (!rows_.score(tile, scratch)) return false;
  table_.weigh_scores(tile, query_panel_, lse_, scratch.scores);
  return true;
}

// The offsets of the forward pass begin anew with every chunk of keys.
void PanelGradients::begin_chunk(std::int64_t chunk) {
  if (chunk == chunk_) return;
  chunk_ = chunk;
  query_panel_.moving = true;
  rows_.forget_offsets(query_panel_.state);
}

void PanelGradients::add_values(const kernels::Tile& tile, float* weights) {
  table_.add_to_keys(tile, query_panel_, weights, grad_out_blocks_, !has_finite_rows_,
                     {sums_.value + tile.first_key * sums_.value_stride, sums_.value_stride});
}

void PanelGradients::add_to_options(const detail::ScoreTile& place,
                                    const float* grad_scores) const {
  if (sums_.bias.data != nullptr) add_bias(place, grad_scores);
  if (sums_.alibi_slopes == nullptr) return;
  alignas(64) std::array<float, kernels::kMaxPanelWidth> distances;
  table_.sum_distances(place, grad_scores, distances.data());
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    sums_.alibi_slopes[rows_.head(r) - first_head_] -=
        double{distances[static_cast<std::size_t>(r)]};
  }
}

void PanelGradients::add_bias(const detail::ScoreTile& place, const float* grad_scores) const {
  const BiasSums& bias = sums_.bias;
  std::array<float*, kernels::kMaxPanelWidth> rows;
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    rows[static_cast<std::size_t>(r)] = bias.data +
                                        (rows_.head(r) - first_head_) * bias.head_stride +
                                        (rows_.query(r) - task_.queries.begin) * bias.query_stride +
                                        place.first_key * bias.key_stride;
  }
  table_.add_to_rows(place, grad_scores, {rows.data(), bias.key_stride});
}

void PanelGradients::write(const BackwardJob& job) const {
  alignas(64) std::array<float, kernels::kMaxPanelWidth> factors;
  std::array<float*, kernels::kMaxPanelWidth> rows{};
  factors.fill(factor_);
  const MutableRows query = rows_of(job.gradients.query);
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    rows[static_cast<std::size_t>(r)] =
        reinterpret_cast<float*>(query.row(task_.batch, rows_.head(r), rows_.query(r)));
  }
  schedule_.table->unpack(grad_query_, rows_.width(), query_panel_.head_dim, factors.data(),
                          rows.data());
}

}  // namespace heed::inline v0::fused
