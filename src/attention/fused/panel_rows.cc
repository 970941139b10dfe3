#include "attention/fused/panel_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace heed::inline v0::fused {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

kernels::PanelState take_state(const kernels::KernelTable& table, std::int64_t value_dim,
                               Workspace& workspace) {
  const std::int64_t width = 3 * table.lanes;
  return {workspace.floats(width), workspace.floats(width), workspace.floats(width),
          workspace.floats(width * value_dim)};
}

// Whether scores are modified, which the plain kernel does not know.
bool modifies(const Problem<float>& problem) {
  return problem.softcap != 0 || problem.score_mod || problem.bias ||
         !problem.mask.is_structural() || !problem.dropout.keeps_everything();
}

}  // namespace

PanelRows::PanelRows(const Problem<float>& problem, const kernels::KernelTable& table,
                     Workspace& workspace)
    : problem_(problem),
      table_(table),
      modifies_scores_(modifies(problem)),
      part_(take_state(table, problem.value_dim, workspace)),
      total_(take_state(table, problem.value_dim, workspace)),
      query_(workspace.floats(3 * table.lanes * problem.head_dim)) {}

void PanelRows::start(std::int64_t batch, std::int64_t kv_head, std::int64_t first,
                      std::int64_t count) {
  batch_ = batch;
  num_rows_ = static_cast<std::int32_t>(count);
  const std::int32_t vectors = (num_rows_ + table_.lanes - 1) / table_.lanes;
  width_ = vectors * table_.lanes;
  std::array<const float*, kernels::kMaxPanelWidth> rows{};
  const std::int64_t group = problem_.heads_per_kv_head;
  for (std::int32_t r = 0; r < num_rows_; ++r) {
    const std::int64_t head = kv_head * group + (first + r) % group;
    const std::int64_t q = (first + r) / group;
    const auto i = static_cast<std::size_t>(r);
    heads_[i] = static_cast<std::int32_t>(head);
    queries_[i] = static_cast<std::int32_t>(q);
    positions_[i] = static_cast<std::int32_t>(q + problem_.shape.query_offset);
    rows[i] = problem_.query.data() + batch * problem_.query.stride(0) +
              head * problem_.query.stride(1) + q * problem_.query.stride(2);
  }
  // Lanes without a row stand where the last row stands, and so never ask a user's function about a
  // cell that is not there.
  const auto past_last = static_cast<std::size_t>(num_rows_);
  std::fill(heads_.begin() + num_rows_, heads_.end(), heads_[past_last - 1]);
  std::fill(positions_.begin() + num_rows_, positions_.end(), positions_[past_last - 1]);
  const float factor =
      modifies_scores_ ? problem_.scale : problem_.scale * std::numbers::log2e_v<float>;
  const auto head_dim = static_cast<std::int32_t>(problem_.head_dim);
  table_.pack(rows.data(), width_, head_dim, factor, query_);
  panel_ = {.vectors = vectors,
            .head_dim = head_dim,
            .value_dim = static_cast<std::int32_t>(problem_.value_dim),
            .query = query_,
            .begin = begin_.data(),
            .end = end_.data(),
            .state = part_};
  find_ranges();
  clear(part_);
  clear(total_);
}

void PanelRows::find_ranges() {
  begin_.fill(0);
  end_.fill(0);
  panel_.any_begin = panel_.all_end = std::numeric_limits<std::int32_t>::max();
  panel_.any_end = panel_.all_begin = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(num_rows_); ++r) {
    const RowRange keys = problem_.mask.range(batch_, queries_[r]);
    begin_[r] = static_cast<std::int32_t>(keys.begin);
    end_[r] = static_cast<std::int32_t>(keys.end);
    panel_.all_begin = std::max(panel_.all_begin, begin_[r]);
    panel_.all_end = std::min(panel_.all_end, end_[r]);
    if (begin_[r] == end_[r]) continue;
    panel_.any_begin = std::min(panel_.any_begin, begin_[r]);
    panel_.any_end = std::max(panel_.any_end, end_[r]);
  }
}

void PanelRows::clear(const kernels::PanelState& state) const {
  forget_scores(state);
  std::fill_n(state.sum, width_, 0.0F);
  std::fill_n(state.out, width_ * problem_.value_dim, 0.0F);
}

void PanelRows::forget_scores(const kernels::PanelState& state) const {
  std::fill_n(state.minus_m, width_, 0.0F);
  for (std::int32_t r = 0; r < width_; ++r) {
    const auto i = static_cast<std::size_t>(r);
    state.threshold[r] = begin_[i] < end_[i] ? -kInfinity : kInfinity;
  }
}

void PanelRows::add(const kernels::Tile& tile, float* scores, float* dropout) {
  if (!modifies_scores_) {
    table_.attend(tile, panel_, scores);
    return;
  }
  const detail::ScoreTile score_part = score_tile(tile, scores);
  if (score_part.begin >= score_part.end) return;
  table_.score(tile, panel_, scores);
  modify(score_part);
  const bool drops = !problem_.dropout.keeps_everything();
  if (drops) fill_dropout(score_part, dropout);
  table_.absorb(tile, panel_, scores, drops ? dropout : nullptr);
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

// In the order of the contract: softcap, score_mod, bias, mask.
void PanelRows::modify(const detail::ScoreTile& tile) const {
  if (problem_.softcap != 0) cap(tile);
  problem_.score_mod.apply_to(tile);
  if (problem_.bias) add_bias(tile);
  problem_.mask.hide(tile);
}

void PanelRows::cap(const detail::ScoreTile& tile) const {
  const float softcap = problem_.softcap;
  float* scores = tile.scores + static_cast<std::int64_t>(tile.begin) * width_;
  const float* end = tile.scores + static_cast<std::int64_t>(tile.end) * width_;
  for (; scores != end; ++scores) *scores = softcap * std::tanh(*scores / softcap);
}

void PanelRows::add_bias(const detail::ScoreTile& tile) const {
  const TensorView<const float>& bias = *problem_.bias;
  for (std::int32_t r = 0; r < num_rows_; ++r) {
    const auto i = static_cast<std::size_t>(r);
    const float* row = bias.data() + batch_ * bias.stride(0) + heads_[i] * bias.stride(1) +
                       queries_[i] * bias.stride(2) + tile.first_key * bias.stride(3);
    for (std::int32_t j = tile.begin; j < tile.end; ++j) {
      tile.scores[static_cast<std::int64_t>(j) * width_ + r] += row[j * bias.stride(3)];
    }
  }
}

void PanelRows::fill_dropout(const detail::ScoreTile& tile, float* dropout) const {
  for (std::int32_t r = 0; r < num_rows_; ++r) {
    const auto i = static_cast<std::size_t>(r);
    ScorePosition at{tile.batch, heads_[i], positions_[i], 0};
    DropoutMask::Words words{};
    for (std::int32_t j = tile.begin; j < tile.end; ++j) {
      at.kv_idx = tile.first_key + j;
      if (j == tile.begin || at.kv_idx % 8 == 0) words = problem_.dropout.words(at);
      dropout[static_cast<std::int64_t>(j) * width_ + r] =
          static_cast<float>(problem_.dropout.factor(words, at.kv_idx));
    }
  }
}

void PanelRows::end_chunk() {
  table_.merge(panel_, part_, total_);
  forget_scores(part_);
  panel_.moving = true;
}

bool PanelRows::is_finite() const { return table_.is_finite(panel_, total_); }

void PanelRows::restart_guarded() {
  panel_.guarded = true;
  panel_.moving = true;
  clear(part_);
  clear(total_);
}

void PanelRows::write(TensorView<float> out, TensorView<float> lse) const {
  alignas(64) std::array<float, kernels::kMaxPanelWidth> factors{};
  std::array<float*, kernels::kMaxPanelWidth> rows{};
  for (std::int32_t r = 0; r < num_rows_; ++r) {
    const auto i = static_cast<std::size_t>(r);
    const Normaliser normaliser = normaliser_of(r);
    factors[i] = normaliser.factor;
    rows[i] = out.data() + batch_ * out.stride(0) + heads_[i] * out.stride(1) +
              queries_[i] * out.stride(2);
    if (!lse.empty()) {
      lse(batch_, std::int64_t{heads_[i]}, std::int64_t{queries_[i]}) = normaliser.lse();
    }
  }
  table_.unpack(total_.out, width_, panel_.value_dim, factors.data(), rows.data());
}

float PanelRows::Normaliser::lse() const {
  if (sum == 0) return -kInfinity;
  return static_cast<float>((m + std::log2(static_cast<double>(sum))) * std::numbers::ln2);
}

PanelRows::Normaliser PanelRows::normaliser_of(std::int32_t r) const {
  const float sum = total_.sum[r];
  const float m = sum == 0 ? -kInfinity : -total_.minus_m[r];
  const float sink = problem_.sinks ? (*problem_.sinks)(heads_[static_cast<std::size_t>(r)]) *
                                          std::numbers::log2e_v<float>
                                    : -kInfinity;
  if (sink == -kInfinity) return {sum == 0 ? 0.0F : 1 / sum, m, sum};
  // Both in units of 2^largest.
  const float largest = std::max(m, sink);
  const float scale = sum == 0 ? 0.0F : std::exp2(m - largest);
  const float with_sink = sum * scale + std::exp2(sink - largest);
  return {scale / with_sink, largest, with_sink};
}

}  // namespace heed::inline v0::fused
