#include "attention/engine/panel_gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "attention/engine/exact_rows.h"
#include "attention/engine/key_pairs.h"
#include "attention/engine/keys_together.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 { namespace engine {

namespace {

std::int64_t whole_vectors(std::int64_t dim, std::int64_t lanes) {
  return (dim + lanes - 1) / lanes * lanes;
}

std::size_t index(std::int32_t r) { return static_cast<std::size_t>(r); }

}  // namespace

template <class Real>
GradientsMemory<Real>::GradientsMemory(const Schedule<Real>& schedule, Layout& layout)
    : rows(schedule, layout),
      grad_out(layout.add<Real>(schedule.panel_rows * schedule.value_dim)),
      grad_query(layout.add<Real>(schedule.panel_rows * schedule.head_dim)),
      lse(layout.add<Real>(schedule.panel_rows)),
      lse_low(layout.add<Real>(schedule.stages_pairs ? schedule.panel_rows : 0)),
      minus_m(layout.add<Real>(schedule.panel_rows)),
      threshold(layout.add<Real>(schedule.panel_rows)),
      delta(layout.add<Real>(schedule.panel_rows)),
      query_rows(layout.add<Real>(schedule.panel_rows *
                                  whole_vectors(schedule.head_dim, schedule.table->lanes))),
      grad_out_rows(layout.add<Real>(schedule.panel_rows *
                                     whole_vectors(schedule.value_dim, schedule.table->lanes))) {}

template <class Real>
PanelGradients<Real>::PanelGradients(const Schedule<Real>& schedule,
                                     const GradientsMemory<Real>& parts, std::byte* memory)
    : schedule_(schedule),
      table_(*schedule.table->backward),
      rows_(schedule, parts.rows, memory),
      grad_out_(parts.grad_out.in(memory)),
      grad_query_(parts.grad_query.in(memory)),
      lse_(parts.lse.in(memory)),
      lse_low_(parts.lse_low.in(memory)),
      delta_(parts.delta.in(memory)),
      query_rows_(parts.query_rows.in(memory)),
      grad_out_rows_(parts.grad_out_rows.in(memory)),
      offsets_{.minus_m = parts.minus_m.in(memory), .threshold = parts.threshold.in(memory)} {}

template <class Real>
void PanelGradients<Real>::place(const PanelTask<Real>& task, const RowBlock& rows) {
  rows_.place(task.job, rows);
  exact_ = nullptr;
  find_kept(task.job, rows);
  find_lost_rows(task);
}

template <class Real>
void PanelGradients<Real>::start(const PanelTask<Real>& task, std::span<const RowIndex> rows,
                                 const PanelWeights<Real>& weights,
                                 const GradientScratch<Real>& scratch) {
  rows_.place(task.job, task.task.batch, rows);
  exact_ = &weights;
  kept_ = {};
  num_lost_ = 0;
  start(task, scratch);
}

template <class Real>
void PanelGradients<Real>::start(const PanelTask<Real>& task,
                                 const GradientScratch<Real>& scratch) {
  const BackwardCall<Real>& job = task.job;
  rows_.pack(scratch.rows);
  task_ = task.task;
  sums_ = &task.sums;
  request_ = job.request;
  changes_scores_ = changes_scores(*request_);
  chunk_ = -1;
  std::fill_n(grad_query_, std::int64_t{rows_.width()} * rows_.panel().head_dim, Real{0});
  start_rows(job, scratch);
  find_delta(job, scratch);
  if (job.sums_sinks()) add_sinks(job);
}

template <class Real>
void PanelGradients<Real>::find_kept(const BackwardCall<Real>& job, const RowBlock& rows) {
  kept_ = {};
  if (job.kept == nullptr) return;
  const auto kept = KeptLayout<Real>(*job.request, schedule_).panel(job.kept, rows);
  if (kept.has_width(rows_.width())) kept_ = kept;
}

template <class Real>
void PanelGradients<Real>::find_lost_rows(const PanelTask<Real>& task) {
  num_lost_ = 0;
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    if (!is_lost_lse(task.job.lse(rows_.batch(), rows_.head(r), rows_.query(r)))) continue;
    lost_rows_[static_cast<std::size_t>(num_lost_++)] = rows_.row(r);
  }
}

// Reads everything about the rows that does not depend on keys.
template <class Real>
void PanelGradients<Real>::start_rows(const BackwardCall<Real>& job,
                                      const GradientScratch<Real>& scratch) {
  const std::int32_t head_dim = rows_.panel().head_dim;
  const std::int32_t value_dim = rows_.panel().value_dim;
  const auto vectors = [&](std::int32_t dim) { return (dim + rows_.lanes() - 1) / rows_.lanes(); };
  query_vectors_ = {query_rows_, rows_.num_rows(), rows_.width(), vectors(head_dim)};
  grad_out_vectors_ = {grad_out_rows_, rows_.num_rows(), rows_.width(), vectors(value_dim)};
  std::array<Real, kernels::kMaxPanelWidth> factors;
  factors.fill(schedule_.stages_pairs ? Real{1} : request_->scale);
  read_lse(job);
  RowPointers rows = read_rows(job.query, head_dim, scratch);
  has_finite_rows_ =
      table_.fill_rows({rows.data(), factors.data()}, head_dim, query_vectors_, query_rows_);
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) factors[index(r)] = weight_factor(job, r);
  rows = read_rows(job.grad_out, value_dim, scratch);
  const bool is_finite =
      table_.fill_rows({rows.data(), factors.data()}, value_dim, grad_out_vectors_, grad_out_rows_);
  has_finite_rows_ = has_finite_rows_ && is_finite;
  table_.pack_rows({rows.data(), factors.data()}, rows_.width(), value_dim, grad_out_);
  if (schedule_.stages_pairs) pair_rows();
}

template <class Real>
void PanelGradients<Real>::read_lse(const BackwardCall<Real>& job) {
  for (std::int32_t r = 0; r < rows_.width(); ++r) {
    const bool exists = r < rows_.num_rows();
    if (lse_low_ != nullptr) lse_low_[r] = exists ? low_part(job, r) : Real{0};
    const Real lse = exists ? lse_of(job, r) : -kInfinity<Real>;
    lse_[r] = lse == kInfinity<Real> ? std::numeric_limits<Real>::quiet_NaN() : lse;
    if (lse == -kInfinity<Real>) lse_[r] = kInfinity<Real>;
  }
}

// The rows of a tensor as numbers; null for a row that sees no key, as its numbers must not reach
// one.
template <class Real>
typename PanelGradients<Real>::RowPointers PanelGradients<Real>::read_rows(
    const Rows& tensor, std::int32_t dim, const GradientScratch<Real>& scratch) const {
  RowPointers rows{};
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    if (lse_[r] == kInfinity<Real>) continue;
    Real* const own = scratch.rows + r * (scratch.rows == nullptr ? 0 : std::int64_t{dim});
    rows[index(r)] = read_row(*schedule_.table, tensor, task_.batch, rows_.row(r), dim, own);
  }
  return rows;
}

// Turns numbers into pairs. With pairs, the gradients of scores are multiplied by scale instead of
// the query.
template <class Real>
void PanelGradients<Real>::pair_rows() {
  query_vectors_.scale = request_->scale;
  table_.pair_rows(query_vectors_, query_rows_);
  table_.pair_rows(grad_out_vectors_, grad_out_rows_);
  schedule_.table->pair_panel(grad_out_, rows_.panel().value_dim, rows_.width());
}

// The lse of a row; −infinity, as for a row that sees no key, if the row is lost.
template <class Real>
Real PanelGradients<Real>::lse_of(const BackwardCall<Real>& job, std::int32_t r) const {
  const Real lse = job.lse(task_.batch, rows_.head(r), rows_.query(r));
  return exact_ == nullptr && is_lost_lse(lse) ? -kInfinity<Real> : lse;
}

// The factor that corrects all weights of a row, computed from its lse: exp(lse − exact lse). Every
// gradient is a sum of products of a weight and a number linear in grad_out, including delta, so
// that grad_out can be multiplied by it instead.
template <class Real>
Real PanelGradients<Real>::weight_factor(const BackwardCall<Real>& job, std::int32_t r) const {
  if (lse_low_ != nullptr) return 1;
  // |low| is at most half a unit in the last place of an lse below kLargestOffset, 2⁻⁷: three terms
  // of the series are enough.
  const double low = low_part(job, r);
  return static_cast<Real>(1 - low + low * low / 2);
}

// The rounding error of a row's lse; 0 if it is not known.
template <class Real>
Real PanelGradients<Real>::low_part(const BackwardCall<Real>& job, std::int32_t r) const {
  if (job.lse_low.empty() || exact_ != nullptr) return 0;
  return job.lse_low(task_.batch, rows_.head(r), rows_.query(r));
}

template <class Real>
void PanelGradients<Real>::find_delta(const BackwardCall<Real>& job,
                                      const GradientScratch<Real>& scratch) {
  const RowPointers out = read_out(job, scratch);
  table_.find_delta(rows_.panel(), grad_out_, out.data(), scratch.pairs_of_out, delta_);
  if (!schedule_.stages_pairs) return;
  alignas(64) std::array<Real, kernels::kMaxPanelWidth> rest;
  const RowPointers rest_of_out = rest_of_pairs(out, scratch);
  table_.find_delta(rows_.panel(), grad_out_, rest_of_out.data(), scratch.pairs_of_out,
                    rest.data());
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    delta_[r] += rest[index(r)];
  }
}

// The output of the rows as numbers, with its rounding error added where it is known.
template <class Real>
typename PanelGradients<Real>::RowPointers PanelGradients<Real>::read_out(
    const BackwardCall<Real>& job, const GradientScratch<Real>& scratch) const {
  const auto& table = *schedule_.table;
  const std::int32_t value_dim = rows_.panel().value_dim;
  RowPointers rows{};
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    Real* const own = scratch.rows + r * (scratch.rows == nullptr ? 0 : value_dim);
    rows[index(r)] = read_row(table, job.out, task_.batch, rows_.row(r), value_dim, own);
    if (job.out_low.data == nullptr) continue;
    const Real* low =
        read_row(table, job.out_low, task_.batch, rows_.row(r), value_dim, scratch.row);
    for (std::int32_t d = 0; d < value_dim; ++d) own[d] += low[d];
  }
  return rows;
}

// The rounding errors of the numbers of these rows in bfloat16, of which pairs consist.
template <class Real>
typename PanelGradients<Real>::RowPointers PanelGradients<Real>::rest_of_pairs(
    RowPointers rows, const GradientScratch<Real>& scratch) const {
  const auto& table = *schedule_.table;
  const std::int32_t value_dim = rows_.panel().value_dim;
  auto* const narrow = reinterpret_cast<std::byte*>(scratch.row);
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    Real* const own = scratch.rows + std::int64_t{r} * value_dim;
    table.narrow_rest(DataType::kBFloat16, rows[index(r)], value_dim, narrow);
    table.widen(DataType::kBFloat16, narrow, value_dim, own);
    rows[index(r)] = own;
  }
  return rows;
}

// A sink is one more logit, with a weight but without a value.
template <class Real>
void PanelGradients<Real>::add_sinks(const BackwardCall<Real>& job) const {
  const std::int64_t first_head = task_.kv_head * request_->heads_per_kv_head;
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    if (lse_of(job, r) == -kInfinity<Real>) continue;
    sums_->sinks[rows_.head(r) - first_head] -= sink_weight(job, r) * double{delta_[r]};
  }
}

template <class Real>
double PanelGradients<Real>::sink_weight(const BackwardCall<Real>& job, std::int32_t r) const {
  const double sink = (*request_->sinks)(rows_.head_place(r));
  if (exact_ != nullptr) return exact_->weight_of(sink, r);
  const double low = lse_low_ == nullptr ? 0 : double{lse_low_[r]};
  return elementary::exp(sink - double{lse_of(job, r)} - low);
}

template <class Real>
void PanelGradients<Real>::take_row(std::int32_t r, const PanelGradients& from,
                                    std::int32_t from_r) {
  const std::int64_t width = rows_.width();
  const std::int64_t from_width = from.rows_.width();
  for (std::int64_t d = 0; d < schedule_.head_dim; ++d) {
    grad_query_[d * width + r] =
        from.is_started() ? from.grad_query_[d * from_width + from_r] : Real{0};
  }
}

template <class Real>
void PanelGradients<Real>::add(std::span<const kernels::BasicTile<Real>> tiles,
                               bool has_finite_keys, const GradientScratch<Real>& scratch) {
  const kernels::BasicTile<Real>& tile = tiles.front();
  if (exact_ != nullptr || !changes_scores_) {
    weigh(tile, scratch);
    add_weighed({tile, rows_.panel(), sums_of(tile, {})}, has_finite_keys, scratch);
    return;
  }
  SeenTile<Real> seen(tile, rows_, keys_);
  if (tiles.size() > 1) {
    seen.take_tiles(static_cast<std::int32_t>(tiles.size()));
    scratch.scores.together->put(seen.tile(), seen.panel().head_dim, seen.panel().value_dim);
  }
  if (!rows_.score(seen, scratch.scores)) return;
  if (schedule_.stages_pairs && seen.has_other_pairs()) {
    put_pairs(schedule_, SummedOverKeys::kKeys, seen.tile(), scratch.scores.pairs);
  }
  table_.weigh_scores(seen.tile(), seen.panel(), {lse_, lse_low_}, scratch.scores.scores);
  add_weighed({seen.tile(), seen.panel(), sums_of(tile, seen.steps())}, has_finite_keys, scratch);
}

// The sums of the gradients of these keys of a tile.
template <class Real>
typename PanelGradients<Real>::TileSums PanelGradients<Real>::sums_of(
    const kernels::BasicTile<Real>& tile, const KeySteps& seen) const {
  const std::int64_t first = tile.first_key - sums_->first_key + seen.first;
  return {{sums_->key + first * sums_->key_stride, seen.step * sums_->key_stride},
          {sums_->value + first * sums_->value_stride, seen.step * sums_->value_stride}};
}

// Adds a tile whose weights have been computed.
template <class Real>
void PanelGradients<Real>::add_weighed(const Weighed& weighed, bool has_finite_keys,
                                       const GradientScratch<Real>& scratch) {
  const kernels::BasicTile<Real>& tile = weighed.tile;
  const kernels::BasicPanel<Real>& panel = weighed.panel;
  Real* weights = scratch.scores.scores;
  Real* grads = scratch.grad_scores;
  const auto add_values = [&] {
    table_.add_to_keys(tile, panel, weights, grad_out_vectors_, !has_finite_rows_,
                       weighed.sums.value);
  };
  const kernels::BasicDropoutRows<Real>* dropout = rows_.dropout();
  if (dropout != nullptr) {
    table_.fill_dropout(tile, panel, *dropout, scratch.dropout);
  } else {
    add_values();
  }
  const Real* factors = dropout != nullptr ? scratch.dropout : nullptr;
  // Terms read the gradients of all scores; otherwise those that some row of a vector sees suffice.
  const bool whole = !request_->terms.empty();
  table_.grad_scores(tile, panel, {grad_out_, weights, delta_, factors, whole, kept_.exists()},
                     grads);
  if (dropout != nullptr) {
    table_.multiply(tile, panel, scratch.dropout, weights);
    add_values();
  }
  if (changes_scores_) add_to_terms(rows_.score_tile(tile, weights), grads);
  if (scratch.scores.derivatives != nullptr) {
    table_.multiply(tile, panel, scratch.scores.derivatives, grads);
  }
  table_.add_to_query(tile, panel, !has_finite_keys, grads, grad_query_);
  table_.add_to_keys(tile, panel, grads, query_vectors_, !has_finite_rows_, weighed.sums.key);
}

// Computes the weights of scores without terms, or of rows that are computed exactly.
template <class Real>
void PanelGradients<Real>::weigh(const kernels::BasicTile<Real>& tile,
                                 const GradientScratch<Real>& scratch) {
  if (exact_ != nullptr) {
    WeightScratch<Real> exact{scratch.scores, scratch.scores.scores};
    exact.scores = scratch.grad_scores;
    exact_->weigh(tile, exact);
    return;
  }
  if (kept_.exists()) {
    const kernels::BasicKeptTile<Real> kept{kept_.weights(tile.first_key),
                                            kept_.minus_m(tile.first_key)};
    table_.weigh_kept(tile, rows_.panel(), kept, {lse_, lse_low_}, scratch.scores.scores);
    return;
  }
  begin_chunk(tile.first_key / kernels::kChunkKeys);
  table_.weigh(tile, rows_.panel(), offsets_, {lse_, lse_low_}, scratch.scores.scores);
}

// The offsets of the forward pass start anew with every chunk of keys.
template <class Real>
void PanelGradients<Real>::begin_chunk(std::int64_t chunk) {
  if (chunk == chunk_) return;
  chunk_ = chunk;
  offsets_.moving = false;
  rows_.reset_offsets(offsets_);
}

template <class Real>
void PanelGradients<Real>::add_to_terms(const kernels::BasicScoreTile<Real>& place,
                                        Real* grad_scores) const {
  std::size_t i = 0;
  for (const auto& term : request_->terms) {
    const TermSums<Real>& sums = sums_->terms[i++];
    if (term->adds_to_values()) {
      term->add_value_gradients(place, grad_out_, grad_scores, sums, schedule_.table->loops);
    }
  }
  i = 0;
  for (const auto& term : request_->terms) {
    const TermSums<Real>& sums = sums_->terms[i++];
    if (term->gradient() != nullptr) {
      term->add_gradient(place, grad_scores, sums, schedule_.table->loops);
    }
    if (term->reads_gradient()) term->read_gradient(place, grad_scores);
    if (term->reads_query()) {
      term->add_query_gradient(place, grad_scores, grad_query_, schedule_.table->loops);
    }
  }
}

template <class Real>
void PanelGradients<Real>::write(const BackwardCall<Real>& job,
                                 const GradientScratch<Real>& scratch) const {
  const MutableRows& query = job.gradients.query;
  const std::int32_t head_dim = rows_.panel().head_dim;
  const bool is_real = query.type == data_type_of<Real>();
  alignas(64) std::array<Real, kernels::kMaxPanelWidth> factors;
  std::array<Real*, kernels::kMaxPanelWidth> rows{};
  factors.fill(request_->scale);
  const auto target = [&](std::int32_t r) {
    return query.row(task_.batch, rows_.head(r), rows_.query(r));
  };
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    rows[index(r)] =
        is_real ? reinterpret_cast<Real*>(target(r)) : scratch.rows + std::int64_t{r} * head_dim;
  }
  schedule_.table->unpack(grad_query_, rows_.width(), head_dim, factors.data(), rows.data());
  if (is_real) return;
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    schedule_.table->narrow(query.type, rows[index(r)], head_dim, target(r));
  }
}

template struct GradientsMemory<float>;
template struct GradientsMemory<double>;
template class PanelGradients<float>;
template class PanelGradients<double>;

}}}  // namespace heed::v0::engine
