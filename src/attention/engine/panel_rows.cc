#include "attention/engine/panel_rows.h"

#include <algorithm>
#include <limits>
#include <numbers>
#include <type_traits>

#include "attention/engine/seen_tile.h"
#include "attention/kernels/panel/backward.h"

namespace heed { inline namespace v0 { namespace engine {

namespace {

template <class Real>
kernels::BasicDropoutRows<Real> dropout_rows(const DropoutMask& mask) {
  kernels::BasicDropoutRows<Real> rows;
  rows.threshold = mask.threshold();
  rows.kept_factor = static_cast<Real>(mask.kept_factor());
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const auto [key0, key1] = philox_round_key(mask.key(), round);
    rows.round_keys[static_cast<std::size_t>(round)] = {key0, key1};
  }
  return rows;
}

}  // namespace

template <class Real>
ScoreMemory<Real>::ScoreMemory(const Schedule<Real>& schedule, Layout& layout,
                               bool with_derivatives)
    : scores(layout.add<Real>(cells(schedule))),
      mask(layout.add<Real>(schedule.has_irregular_mask ? cells_in_vectors(schedule) : 0)),
      derivatives(layout.add<Real>(with_derivatives ? cells(schedule) : 0)),
      pairs(layout.add<Real>(schedule.has_irregular_mask ? schedule.pair_cells() : 0)) {}

template <class Real>
PanelRows<Real>::PanelRows(const Schedule<Real>& schedule, const RowsMemory<Real>& parts,
                           std::byte* memory)
    : table_(*schedule.table),
      has_few_rows_(schedule.has_few_rows),
      always_keeps_scores_(schedule.keeps_scores),
      key_storage_(schedule.key_storage),
      packed_query_(parts.query.in(memory)),
      digits_(parts.digits.in(memory)),
      tiles_(parts.runs.in(memory)) {}

template <class Real>
void PanelRows<Real>::place(const Call<Real>& job, const RowBlock& block) {
  resize(job, block.batch, block.rows.end - block.rows.begin);
  const std::int64_t group = request_->heads_per_kv_head;
  const std::int64_t first_head = block.kv_head * group;
  std::int64_t q = block.first_query + block.rows.begin / group * block.query_step;
  std::int64_t head = first_head + block.rows.begin % group;
  for (std::int32_t r = 0; r < num_rows_; ++r) {
    place_row(r, head, q);
    if (++head == first_head + group) {
      head = first_head;
      q += block.query_step;
    }
  }
  finish(request_->keys());
}

template <class Real>
void PanelRows<Real>::place(const Call<Real>& job, std::int64_t batch,
                            std::span<const RowIndex> rows, RowRange keys) {
  resize(job, batch, static_cast<std::int64_t>(rows.size()));
  for (std::int32_t r = 0; r < num_rows_; ++r)
    place_row(r, rows[index(r)].head, rows[index(r)].query);
  finish(keys);
}

template <class Real>
void PanelRows<Real>::resize(const Call<Real>& job, std::int64_t batch, std::int64_t num_rows) {
  request_ = job.request;
  query_ = job.query;
  is_packed_ = false;
  keeps_scores_ = always_keeps_scores_ || changes_scores(*request_);
  batch_ = batch;
  num_rows_ = static_cast<std::int32_t>(num_rows);
  width_ = has_few_rows_ ? num_rows_ : whole_vectors(num_rows_);
}

template <class Real>
void PanelRows<Real>::place_row(std::int32_t r, std::int64_t head, std::int64_t query) {
  heads_[index(r)] = static_cast<std::int32_t>(head);
  queries_[index(r)] = static_cast<std::int32_t>(query);
  head_places_[index(r)] = static_cast<std::int32_t>(request_->head(head));
  positions_[index(r)] =
      static_cast<std::int32_t>(request_->query(query) + request_->scores().query_offset[batch_]);
}

// Computes what depends on the places of all rows.
template <class Real>
void PanelRows<Real>::finish(RowRange keys) {
  // Terms and masks take whole vectors of rows; the rest of the last vector repeats the last row.
  const std::size_t last = index(num_rows_ - 1);
  const std::int32_t end = whole_vectors(num_rows_);
  std::fill(head_places_.begin() + num_rows_, head_places_.begin() + end, head_places_[last]);
  std::fill(positions_.begin() + num_rows_, positions_.begin() + end, positions_[last]);
  panel_ = {.vectors = has_few_rows_ ? kernels::kFewRows : width_ / table_.lanes,
            .num_rows = num_rows_,
            .head_dim = static_cast<std::int32_t>(request_->head_dim()),
            .value_dim = static_cast<std::int32_t>(request_->value_dim()),
            .query = packed_query_,
            .scale = factor(),
            .integers = table_.integers,
            .digits = digits_,
            .begin = begin_.data(),
            .end = end_.data()};
  if (!request_->dropout.keeps_everything()) {
    dropout_ = dropout_rows<Real>(request_->dropout);
    dropout_.batch = static_cast<std::uint32_t>(batch_);
    dropout_.heads = head_places_.data();
    dropout_.q_idx = positions_.data();
  }
  find_ranges();
  tiles_.find(request_->mask, group(),
              {std::max<std::int64_t>(panel_.any_begin, keys.begin),
               std::min<std::int64_t>(panel_.any_end, keys.end)});
}

template <class Real>
void PanelRows<Real>::pack(Real* scratch) {
  is_packed_ = true;
  std::array<const Real*, kernels::kMaxPanelWidth> rows;
  std::fill(rows.begin() + num_rows_, rows.begin() + width_, nullptr);
  if (table_.multiplies_pairs()) {
    for (std::int32_t r = 0; r < num_rows_; ++r) {
      const RowIndex at = row(r);
      rows[index(r)] = reinterpret_cast<const Real*>(query_.row(batch_, at.head, at.query));
    }
    table_.pack_pairs(rows.data(), width_, panel_.head_dim, packed_query_);
    return;
  }
  for (std::int32_t r = 0; r < num_rows_; ++r) {
    rows[index(r)] = read_row(table_, query_, batch_, row(r), request_->head_dim(), scratch);
    if (rows[index(r)] == scratch) scratch += request_->head_dim();
  }
  table_.pack(rows.data(), width_, panel_.head_dim, factor(), packed_query_);
  if constexpr (std::is_same_v<Real, float>) {
    if (digits_ == nullptr) return;
    table_.integers->take_query(key_storage_, packed_query_, width_, num_rows_,
                                {digits_, panel_.head_dim});
  }
}

// The factor of query · key.
template <class Real>
Real PanelRows<Real>::factor() const {
  return keeps_scores_ ? request_->scale : request_->scale * std::numbers::log2e_v<Real>;
}

template <class Real>
void PanelRows<Real>::find_ranges() {
  std::array<RowRange, kernels::kMaxPanelWidth> ranges;
  request_->mask.row_ranges(group(), ranges.data());
  panel_.all_begin = 0;
  panel_.all_end = std::numeric_limits<std::int32_t>::max();
  for (std::int32_t r = 0; r < num_rows_; ++r) {
    begin_[index(r)] = static_cast<std::int32_t>(ranges[index(r)].begin);
    end_[index(r)] = static_cast<std::int32_t>(ranges[index(r)].end);
    panel_.all_begin = std::max(panel_.all_begin, begin_[index(r)]);
    panel_.all_end = std::min(panel_.all_end, end_[index(r)]);
  }
  std::fill(begin_.begin() + num_rows_, begin_.begin() + width_, 0);
  std::fill(end_.begin() + num_rows_, end_.begin() + width_, 0);
  find_vector_ranges();
}

// The ranges of keys that some row of each vector sees, and that all rows see.
template <class Real>
void PanelRows<Real>::find_vector_ranges() {
  constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();
  panel_.any_begin = kNever;
  panel_.any_end = 0;
  std::fill_n(panel_.vector_begin, kernels::kPanelVectors, kNever);
  std::fill_n(panel_.vector_end, kernels::kPanelVectors, 0);
  const std::int32_t step = has_few_rows_ ? num_rows_ : table_.lanes;
  for (std::int32_t first = 0; first < num_rows_; first += step) {
    std::int32_t begin = kNever;
    std::int32_t end = 0;
    for (std::int32_t r = first; r < std::min(first + step, num_rows_); ++r) {
      begin = std::min(begin, sees_any(r) ? begin_[index(r)] : kNever);
      end = std::max(end, end_[index(r)]);
    }
    panel_.any_begin = std::min(panel_.any_begin, begin);
    panel_.any_end = std::max(panel_.any_end, end);
    if (has_few_rows_) break;
    panel_.vector_begin[first / step] = begin;
    panel_.vector_end[first / step] = end;
  }
}

template <class Real>
void PanelRows<Real>::reset_offsets(const kernels::BasicPanelState<Real>& state) const {
  const std::int32_t end = whole_vectors(width_);
  std::fill(state.minus_m, state.minus_m + end, Real{0});
  for (std::int32_t r = 0; r < width_; ++r) {
    state.threshold[r] = sees_any(r) ? -kInfinity<Real> : kInfinity<Real>;
  }
  std::fill(state.threshold + width_, state.threshold + end, state.threshold[width_ - 1]);
}

template <class Real>
kernels::Visibility PanelRows<Real>::fill_mask(const kernels::StoredTile& tile, Real* mask) const {
  using kernels::Visibility;
  if (!has_mask(tile)) return Visibility::kAll;
  detail::RowBits seen;
  see(tile, seen);
  auto added = score_tile(tile, mask);
  added.width = whole_vectors(width_);
  request_->mask.fill_added(added, table_.loops);
  bool any = false;
  bool hides = request_->mask.adds();
  for (std::int32_t r = 0; r < num_rows_; ++r) {
    any = any || !seen[index(r)].is_empty();
    for (std::int32_t j = added.begin; j < added.end; ++j) {
      if (seen[index(r)].has(j)) continue;
      hides = true;
      added.scores[std::int64_t{j} * added.width + r] = -kInfinity<Real>;
    }
  }
  if (!any) return Visibility::kNone;
  return hides ? Visibility::kMixed : Visibility::kAll;
}

template <class Real>
bool PanelRows<Real>::score(const SeenTile<Real>& seen, const ScoreScratch<Real>& scratch) const {
  if (seen.is_empty()) return false;
  auto scores = score_tile(seen.tile(), scratch.scores);
  scores.derivatives = scratch.derivatives;
  table_.score(seen.tile(), seen.panel(), scratch.scores);
  apply_terms(scores);
  if (request_->mask.adds() && has_mask(seen.tile())) {
    request_->mask.fill_added(score_tile(seen.tile(), scratch.mask), table_.loops);
    table_.add_mask(scores, scratch.mask);
  }
  seen.hide(table_, scores);
  return true;
}

template <class Real>
void PanelRows<Real>::add_to_out(const kernels::BasicTile<Real>& tile, Real* weights,
                                 Real* out) const {
  if (!request_->terms.add_to_values()) return;
  table_.clear_unseen(tile, panel_, weights);
  const auto place = score_tile(tile, weights);
  for (const auto& term : request_->terms) term->add_to_out(place, out, table_.loops);
}

template <class Real>
void PanelRows<Real>::apply_terms(const kernels::BasicScoreTile<Real>& tile) const {
  if (tile.derivatives != nullptr) {
    std::fill(tile.derivatives + std::int64_t{tile.begin} * tile.width,
              tile.derivatives + std::int64_t{tile.end} * tile.width, Real{1});
  }
  for (const auto& term : request_->terms) term->apply_to(tile, table_.loops);
}

template struct ScoreMemory<float>;
template struct ScoreMemory<double>;
template class PanelRows<float>;
template class PanelRows<double>;

}}}  // namespace heed::v0::engine
