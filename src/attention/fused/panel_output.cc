#include "attention/fused/panel_output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "attention/fused/exact_rows.h"

namespace heed::inline v0::fused {

namespace {

kernels::PanelState take_state(const Schedule& schedule, Workspace& workspace) {
  const std::int64_t width = schedule.panel_rows;
  // Each is of whole vectors, also where the width is 1: so are the pieces of a workspace.
  return {workspace.floats(width), workspace.floats(width), workspace.floats(width),
          workspace.floats(width * schedule.value_dim)};
}

}  // namespace

SavedChunk::SavedChunk(const Schedule& schedule, Workspace workspace)
    : seen_(workspace.take<bool>(1)),
      state_(take_state(schedule, workspace)),
      bytes_(workspace.bytes()) {}

std::size_t SavedChunk::bytes(const Schedule& schedule) {
  return SavedChunk(schedule, Workspace(kMeasureOnly)).bytes_;
}

PanelOutput::PanelOutput(const Schedule& schedule, Workspace& workspace)
    : schedule_(schedule),
      rows_(schedule, workspace),
      first_state_(take_state(schedule, workspace)),
      second_state_(schedule.kv_len > kernels::kChunkKeys ? take_state(schedule, workspace)
                                                          : kernels::PanelState{}) {}

void PanelOutput::start(const Block& block, const TileScratch& scratch) {
  rows_.start(block.job, block.batch, block.kv_head, block.rows, scratch.rows);
  panel_ = rows_.panel();
  part_ = first_state_;
  total_ = second_state_;
  has_part_ = has_total_ = false;
}

void PanelOutput::begin_chunk() {
  has_part_ = true;
  if (part_.out == nullptr) std::swap(part_, total_);
  panel_.state = part_;
  panel_.moving = true;
  forget(part_);
}

// Makes `state` that of rows that have seen nothing yet, in whole vectors.
void PanelOutput::forget(const kernels::PanelState& state) const {
  const auto whole = [lanes = schedule_.table->lanes](std::int32_t count) {
    return (count + lanes - 1) / lanes * lanes;
  };
  rows_.forget_offsets(state);
  std::fill_n(state.sum, whole(rows_.width()), 0.0F);
  std::fill_n(state.out, whole(rows_.width() * panel_.value_dim), 0.0F);
}

void PanelOutput::add(const kernels::Tile& tile, const TileScratch& scratch) {
  if (!rows_.sees(tile)) return;
  if (!has_part_) begin_chunk();
  if (!rows_.modifies_scores()) {
    schedule_.table->attend(tile, panel_, scratch.scores);
    return;
  }
  if (rows_.score(tile, scratch)) schedule_.table->absorb(tile, panel_, scratch.scores);
}

void PanelOutput::end_chunk() {
  if (!has_part_) return;
  has_part_ = false;
  if (has_total_) {
    schedule_.table->merge(panel_, part_, total_);
  } else {
    has_total_ = true;
    std::swap(part_, total_);
  }
}

void PanelOutput::take_over(const SavedChunk& chunk) {
  part_ = chunk.state();
  has_part_ = true;
  end_chunk();
}

bool PanelOutput::is_finite() const {
  return !has_total_ || schedule_.table->is_finite(panel_, total_);
}

void PanelOutput::restart_guarded() {
  panel_.guarded = true;
  has_part_ = has_total_ = false;
}

void PanelOutput::write(const Job& job, const TileScratch& scratch) const {
  const Terms<float>& terms = *job.terms;
  const bool is_float = job.out.type == DataType::kFloat32;
  const std::int64_t value_dim = terms.value_dim;
  alignas(64) std::array<float, kernels::kMaxPanelWidth> factors{};
  std::array<float*, kernels::kMaxPanelWidth> rows{};
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    const Normaliser normaliser = normaliser_of(terms, r);
    factors[i] = normaliser.factor;
    std::byte* row = job.out.row(rows_.batch(), rows_.head(r), rows_.query(r));
    rows[i] = is_float ? reinterpret_cast<float*>(row) : scratch.rows + r * value_dim;
    if (!job.lse.empty()) job.lse(rows_.batch(), rows_.head(r), rows_.query(r)) = normaliser.lse();
  }
  if (has_total_) {
    schedule_.table->unpack(total_.out, rows_.width(), panel_.value_dim, factors.data(),
                            rows.data());
  } else {
    for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
      std::fill_n(rows[static_cast<std::size_t>(r)], value_dim, 0.0F);
    }
  }
  if (is_float) return;
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    schedule_.table->narrow(job.out.type, rows[static_cast<std::size_t>(r)], value_dim,
                            job.out.row(rows_.batch(), rows_.head(r), rows_.query(r)));
  }
}

std::int32_t PanelOutput::lost_rows(const Terms<float>& terms, std::span<RowIndex> rows) const {
  std::int32_t count = 0;
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    if (!is_lost(terms, r)) continue;
    rows[static_cast<std::size_t>(count++)] = {static_cast<std::int32_t>(rows_.head(r)),
                                               static_cast<std::int32_t>(rows_.query(r))};
  }
  return count;
}

// A plain kernel does not know whether a score is −infinity or only its exponent.
bool PanelOutput::is_lost(const Terms<float>& terms, std::int32_t r) const {
  const Normaliser normaliser = normaliser_of(terms, r);
  if (normaliser.sum != 0) return std::abs(normaliser.m) > kLargestOffset;
  const bool has_sink = terms.sinks && (*terms.sinks)(rows_.head(r)) != -kInfinity;
  const bool may_be_seen =
      has_total_ && rows_.sees_any(r) &&
      (!rows_.modifies_scores() || total_.threshold[r] == kernels::kBeyondRange);
  return has_sink || may_be_seen;
}

float PanelOutput::Normaliser::lse() const {
  if (sum == 0) return -kInfinity;
  return static_cast<float>((m + std::log2(static_cast<double>(sum))) * std::numbers::ln2);
}

PanelOutput::Normaliser PanelOutput::normaliser_of(const Terms<float>& terms,
                                                   std::int32_t r) const {
  const float sum = has_total_ ? total_.sum[r] : 0;
  const float m = sum == 0 ? -kInfinity : -total_.minus_m[r];
  const float sink =
      terms.sinks ? (*terms.sinks)(rows_.head(r)) * std::numbers::log2e_v<float> : -kInfinity;
  if (sink == -kInfinity) return {sum == 0 ? 0.0F : 1 / sum, m, sum};
  // Both in units of 2^largest.
  const float largest = std::max(m, sink);
  const float scale = sum == 0 ? 0.0F : std::exp2(m - largest);
  const float with_sink = sum * scale + std::exp2(sink - largest);
  return {scale / with_sink, largest, with_sink};
}

}  // namespace heed::inline v0::fused
