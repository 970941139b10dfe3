#include "attention/fused/panel_rows.h"

#include <algorithm>
#include <limits>
#include <numbers>

#include "attention/kernels/backward.h"

namespace heed::inline v0::fused {

namespace {

kernels::DropoutRows dropout_rows(const DropoutMask& mask) {
  kernels::DropoutRows rows{.threshold = mask.threshold(),
                            .kept_factor = static_cast<float>(mask.kept_factor())};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const auto [key0, key1] = philox_round_key(mask.key(), round);
    rows.round_keys[static_cast<std::size_t>(round)] = {key0, key1};
  }
  return rows;
}

}  // namespace

bool modifies_scores(const Terms<float>& terms) {
  return terms.softcap != 0 || terms.score_mod || terms.alibi_slopes || terms.bias ||
         !terms.mask.is_structural();
}

ScoreScratch::ScoreScratch(const Schedule& schedule, Workspace& workspace) {
  const std::int64_t keys = std::min<std::int64_t>(kernels::kTileKeys, schedule.kv_len);
  // Dropout is decided for eight keys at a time.
  const std::int64_t cells = (keys + 7) / 8 * 8 * schedule.panel_rows;
  scores = workspace.floats(cells);
  if (schedule.has_irregular_mask) mask = workspace.floats(cells);
}

PanelRows::PanelRows(const Schedule& schedule, Workspace& workspace)
    : table_(*schedule.table),
      lanes_(std::min(table_.lanes, schedule.panel_rows)),
      keeps_scores_(schedule.keeps_scores),
      packed_query_(workspace.floats(schedule.panel_rows * schedule.head_dim)) {}

void PanelRows::start(const Job& job, std::int64_t batch, std::int64_t kv_head, RowRange rows,
                      float* scratch) {
  resize(job, batch, rows.end - rows.begin);
  const std::int64_t group = terms_->heads_per_kv_head;
  std::int64_t q = rows.begin / group;
  std::int64_t head = kv_head * group + rows.begin % group;
  for (std::int32_t r = 0; r < num_rows_; ++r) {
    place(r, head, q);
    if (++head == (kv_head + 1) * group) {
      head = kv_head * group;
      ++q;
    }
  }
  finish(job, scratch);
}

void PanelRows::start(const Job& job, std::int64_t batch, std::span<const RowIndex> rows,
                      float* scratch) {
  resize(job, batch, static_cast<std::int64_t>(rows.size()));
  for (std::int32_t r = 0; r < num_rows_; ++r) place(r, rows[index(r)].head, rows[index(r)].query);
  finish(job, scratch);
}

void PanelRows::resize(const Job& job, std::int64_t batch, std::int64_t num_rows) {
  terms_ = job.terms;
  modifies_scores_ = keeps_scores_ || fused::modifies_scores(*terms_);
  batch_ = batch;
  num_rows_ = static_cast<std::int32_t>(num_rows);
  width_ = (num_rows_ + lanes_ - 1) / lanes_ * lanes_;
}

void PanelRows::place(std::int32_t r, std::int64_t head, std::int64_t query) {
  heads_[index(r)] = static_cast<std::int32_t>(head);
  queries_[index(r)] = static_cast<std::int32_t>(query);
  positions_[index(r)] = static_cast<std::int32_t>(query + terms_->shape.query_offset);
}

// What follows from the rows, once each has its place.
void PanelRows::finish(const Job& job, float* scratch) {
  // A score_mod is asked about whole vectors of rows, but may know only those that exist.
  const std::size_t last = index(num_rows_ - 1);
  std::fill(heads_.begin() + num_rows_, heads_.begin() + width_, heads_[last]);
  std::fill(positions_.begin() + num_rows_, positions_.begin() + width_, positions_[last]);
  panel_ = {.vectors = width_ / table_.lanes,
            .head_dim = static_cast<std::int32_t>(terms_->head_dim),
            .value_dim = static_cast<std::int32_t>(terms_->value_dim),
            .query = packed_query_,
            .begin = begin_.data(),
            .end = end_.data()};
  if (!terms_->dropout.keeps_everything()) {
    dropout_ = dropout_rows(terms_->dropout);
    dropout_.batch = static_cast<std::uint32_t>(batch_);
    dropout_.heads = heads_.data();
    dropout_.q_idx = positions_.data();
    panel_.dropout = &dropout_;
  }
  find_ranges();
  if (terms_->alibi_slopes) {
    for (std::int32_t r = 0; r < width_; ++r) slopes_[index(r)] = (*terms_->alibi_slopes)(head(r));
  }
  if (terms_->bias) find_bias();
  pack(job, scratch);
}

void PanelRows::pack(const Job& job, float* scratch) {
  std::array<const float*, kernels::kMaxPanelWidth> rows;
  const bool is_float = job.query.type == DataType::kFloat32;
  for (std::int32_t r = 0; r < num_rows_; ++r) {
    const std::byte* row = job.query.row(batch_, head(r), query(r));
    rows[index(r)] = is_float ? reinterpret_cast<const float*>(row) : scratch;
    if (is_float) continue;
    table_.widen(job.query.type, row, terms_->head_dim, scratch);
    scratch += terms_->head_dim;
  }
  std::fill(rows.begin() + num_rows_, rows.begin() + width_, nullptr);
  const float factor =
      modifies_scores_ ? terms_->scale : terms_->scale * std::numbers::log2e_v<float>;
  table_.pack(rows.data(), width_, panel_.head_dim, factor, packed_query_);
}

void PanelRows::find_ranges() {
  panel_.any_begin = panel_.all_end = std::numeric_limits<std::int32_t>::max();
  panel_.any_end = panel_.all_begin = 0;
  std::fill_n(panel_.vector_begin, kernels::kPanelVectors,
              std::numeric_limits<std::int32_t>::max());
  RowRange keys;
  for (std::int32_t r = 0; r < width_; ++r) {
    const bool exists = r < num_rows_;
    // The heads of a query see the same.
    if (exists && (r == 0 || query(r) != query(r - 1))) keys = terms_->mask.range(batch_, query(r));
    begin_[index(r)] = exists ? static_cast<std::int32_t>(keys.begin) : 0;
    end_[index(r)] = exists ? static_cast<std::int32_t>(keys.end) : 0;
    if (!exists) continue;
    panel_.all_begin = std::max(panel_.all_begin, begin_[index(r)]);
    panel_.all_end = std::min(panel_.all_end, end_[index(r)]);
    if (!sees_any(r)) continue;
    panel_.any_begin = std::min(panel_.any_begin, begin_[index(r)]);
    panel_.any_end = std::max(panel_.any_end, end_[index(r)]);
    std::int32_t& vector_begin = panel_.vector_begin[r / table_.lanes];
    std::int32_t& vector_end = panel_.vector_end[r / table_.lanes];
    vector_begin = std::min(vector_begin, begin_[index(r)]);
    vector_end = std::max(vector_end, end_[index(r)]);
  }
}

void PanelRows::forget_offsets(const kernels::PanelState& state) const {
  const std::int32_t width = std::max(width_, table_.lanes);
  for (std::int32_t r = 0; r < width; ++r) {
    state.minus_m[r] = 0;
    state.threshold[r] = sees_any(std::min(r, width_ - 1)) ? -kInfinity : kInfinity;
  }
}

detail::ScoreTile PanelRows::score_tile(const kernels::Tile& tile, float* scores) const {
  return {.scores = scores,
          .width = width_,
          .num_rows = num_rows_,
          .first_key = tile.first_key,
          .begin = std::max(panel_.any_begin - tile.first_key, 0),
          .end = std::min(panel_.any_end - tile.first_key, tile.num_keys),
          .batch = static_cast<std::int32_t>(batch_),
          .heads = heads_.data(),
          .q_idx = positions_.data(),
          .target = table_.tile_target};
}

bool PanelRows::score(const kernels::Tile& tile, const ScoreScratch& scratch) const {
  detail::ScoreTile scores = score_tile(tile, scratch.scores);
  scores.derivatives = scratch.derivatives;
  auto visibility = kernels::Visibility::kAll;
  if (!terms_->mask.is_structural()) {
    const detail::ScoreTile mask = score_tile(tile, scratch.mask);
    terms_->mask.fill(mask, table_);
    visibility = table_.visibility(mask);
    if (visibility == kernels::Visibility::kNone) return false;
  }
  kernels::Panel panel = panel_;
  table_.score(tile, panel, scratch.scores);
  modify(scores);
  if (visibility == kernels::Visibility::kMixed) table_.add_mask(scores, scratch.mask);
  return true;
}

// In the order of the contract; the mask comes last.
void PanelRows::modify(const detail::ScoreTile& tile) const {
  if (terms_->softcap != 0) table_.cap(tile, terms_->softcap);
  if (tile.derivatives != nullptr) table_.backward->start_derivatives(tile, terms_->softcap);
  terms_->score_mod.apply_to(tile);
  if (terms_->alibi_slopes) table_.add_alibi(tile, slopes_.data());
  if (terms_->bias) add_bias(tile);
}

void PanelRows::find_bias() {
  const TensorView<const float>& bias = *terms_->bias;
  for (std::int32_t r = 0; r < width_; ++r) {
    const std::int32_t row = std::min(r, num_rows_ - 1);
    bias_[index(r)] = bias.data() + batch_ * bias.stride(0) + head(row) * bias.stride(1) +
                      query(row) * bias.stride(2);
  }
}

void PanelRows::add_bias(const detail::ScoreTile& tile) const {
  const std::int64_t stride = terms_->bias->stride(3);
  std::array<const float*, kernels::kMaxPanelWidth> rows;
  for (std::int32_t r = 0; r < width_; ++r) {
    rows[index(r)] = bias_[index(r)] + tile.first_key * stride;
  }
  table_.add_rows(tile, {rows.data(), stride});
}

}  // namespace heed::inline v0::fused
