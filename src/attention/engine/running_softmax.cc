#include "attention/engine/running_softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "attention/engine/exact_rows.h"
#include "attention/engine/key_pairs.h"
#include "attention/engine/keys_together.h"
#include "attention/kernels/panel/backward.h"
#include "heed/core/elementary.h"
#include "simd/processor.h"

namespace heed { inline namespace v0 { namespace engine {

template <class Real>
RunningSoftmax<Real>::RunningSoftmax(const Schedule<Real>& schedule,
                                     const SoftmaxMemory<Real>& parts, std::byte* memory)
    : schedule_(schedule),
      rows_(schedule, parts.rows, memory),
      first_state_(parts.first.in(memory)),
      second_state_(parts.has_second ? parts.second.in(memory) : kernels::BasicPanelState<Real>{}) {
}

template <class Real>
void RunningSoftmax<Real>::start(const ForwardCall<Real>& job, const RowBlock& block,
                                 Real* staged_rows) {
  rows_.place(job, block);
  start(staged_rows);
  if (job.kept != nullptr) {
    kept_ = KeptLayout<Real>(*job.request, schedule_).panel(job.kept, block);
    kept_.set_width(0);
  }
}

template <class Real>
void RunningSoftmax<Real>::start(const ForwardCall<Real>& job, std::int64_t batch,
                                 std::span<const RowIndex> rows, RowRange keys, Real* staged_rows) {
  rows_.place(job, batch, rows, keys);
  start(staged_rows);
}

template <class Real>
void RunningSoftmax<Real>::start(Real* staged_rows) {
  staged_rows_ = staged_rows;
  kept_ = {};
  options_ = {.stretches = kernels::best_reading_of_stretches(),
              .dropout = rows_.dropout(),
              .has_mask = rows_.keeps_scores()};
  part_ = first_state_;
  total_ = second_state_;
  has_part_ = has_total_ = false;
  chunk_ = -1;
}

template <class Real>
void RunningSoftmax<Real>::begin_chunk() {
  has_part_ = true;
  if (part_.minus_m == nullptr) std::swap(part_, total_);
  part_.moving = false;
  reset(part_);
}

// Sets `state` to that of rows that have seen no key, in whole vectors.
template <class Real>
void RunningSoftmax<Real>::reset(const kernels::BasicPanelState<Real>& state) const {
  rows_.reset_offsets(state);
  std::fill_n(state.sum, rows_.whole_vectors(rows_.width()), Real{0});
  std::fill_n(state.out, schedule_.out_size() / schedule_.panel_rows * rows_.width(), Real{0});
}

template <class Real>
void RunningSoftmax<Real>::add(const kernels::BasicTile<Real>& tile,
                               const ScoreScratch<Real>& scratch) {
  enter_chunk_of(tile.first_key);
  if (!rows_.keeps_scores()) {
    Real* const weights = kept_.exists() ? kept_.weights(tile.first_key) : scratch.scores;
    schedule_.table->attend(tile, rows_.panel(), options_, part_, weights);
    if (kept_.exists()) {
      std::copy_n(part_.minus_m, rows_.width(), kept_.minus_m(tile.first_key));
    }
    return;
  }
  SeenTile<Real> seen(tile, rows_, keys_);
  if (!rows_.score(seen, scratch)) return;
  if (schedule_.stages_pairs && seen.has_other_pairs()) {
    put_pairs(schedule_, SummedOverKeys::kValues, seen.tile(), scratch.pairs);
  }
  schedule_.table->absorb(seen.tile(), seen.panel(), options_, part_, scratch.scores);
  rows_.add_to_out(tile, scratch.scores, part_.out);
}

template <class Real>
void RunningSoftmax<Real>::add(std::span<const kernels::BasicTile<Real>> tiles,
                               const ScoreScratch<Real>& scratch) {
  if (tiles.size() == 1) return add(tiles.front(), scratch);
  enter_chunk_of(tiles.front().first_key);
  add_alike(tiles, scratch);
}

// Both products go over the keys of all tiles at once. Between them tiles are absorbed one by one,
// as the keys of a tile may move an offset. Where a tile moves an offset that was set before, the
// values of earlier tiles must be added first.
template <class Real>
void RunningSoftmax<Real>::add_alike(std::span<const kernels::BasicTile<Real>> tiles,
                                     const ScoreScratch<Real>& scratch) {
  SeenTile<Real> seen(tiles.front(), rows_, keys_);
  const kernels::BasicPanel<Real> panel = seen.panel();
  const std::int32_t keys_of_tile = seen.tile().num_keys;
  seen.take_tiles(static_cast<std::int32_t>(tiles.size()));
  scratch.together->put(seen.tile(), panel.head_dim, panel.value_dim);
  rows_.score(seen, scratch);
  kernels::BasicTile<Real> first = seen.tile();
  first.num_keys = keys_of_tile;
  const auto scores_of = [&](std::size_t i) {
    return scratch.scores + static_cast<std::int64_t>(i) * first.num_keys * rows_.width();
  };
  kernels::BasicPanel<Real> without_values = panel;
  without_values.value_dim = 0;
  std::size_t added = 0;  // the number of tiles whose values have been added
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const OffsetsAndSums<Real> before(part_, rows_.width());
    const kernels::BasicTile<Real> tile = tiles_after(first, i, 1);
    schedule_.table->absorb(tile, without_values, options_, part_, scores_of(i));
    if (!part_.moving) continue;
    before.put_into(part_, rows_.width());
    add_values(tiles_after(first, added, i - added), panel, scores_of(added));
    schedule_.table->score(tile, panel, scores_of(i));
    schedule_.table->absorb(tile, panel, options_, part_, scores_of(i));
    added = i + 1;
  }
  add_values(tiles_after(first, added, tiles.size() - added), panel, scores_of(added));
}

// Computes outputs with add_to_query() of the backward pass, whose product sums over keys.
template <class Real>
void RunningSoftmax<Real>::add_values(const kernels::BasicTile<Real>& tile,
                                      kernels::BasicPanel<Real> panel, Real* weights) {
  if (tile.num_keys == 0) return;
  kernels::BasicTile<Real> values = tile;
  values.key = tile.value;
  values.key_stride = tile.value_stride;
  panel.head_dim = panel.value_dim;
  panel.any_end = panel.all_end = tile.first_key + tile.num_keys;
  schedule_.table->backward->add_to_query(values, panel, false, weights, part_.out);
}

template <class Real>
void RunningSoftmax<Real>::add(std::span<const kernels::StoredTile> tiles,
                               const kernels::StoredTile* next, const ScoreScratch<Real>& scratch) {
  for (std::size_t i = 0; i < tiles.size();) {
    const std::size_t first = i++;
    if (!rows_.sees(tiles[first])) continue;
    // With a mask one tile at a time, as there is memory for the mask of one.
    while (!options_.has_mask && i < tiles.size() && rows_.sees(tiles[i])) ++i;
    add_seen(tiles.subspan(first, i - first), i < tiles.size() ? &tiles[i] : next, scratch);
  }
}

template <class Real>
void RunningSoftmax<Real>::add_seen(std::span<const kernels::StoredTile> tiles,
                                    const kernels::StoredTile* next,
                                    const ScoreScratch<Real>& scratch) {
  enter_chunk_of(tiles.front().first_key);
  auto options = options_;
  if (options.has_mask) {
    const auto visibility = rows_.fill_mask(tiles.front(), scratch.mask);
    if (visibility == kernels::Visibility::kNone) return;
    if (visibility == kernels::Visibility::kMixed) options.mask = scratch.mask;
  }
  schedule_.table->attend_rows(tiles, next, rows_.panel(), options, part_, scratch.scores);
}

template <class Real>
void RunningSoftmax<Real>::enter_chunk_of(std::int64_t key) {
  end_chunks_before(key);
  if (!has_part_) begin_chunk();
  if (!rows_.is_packed()) rows_.pack(staged_rows_);
}

template <class Real>
void RunningSoftmax<Real>::end_chunks_before(std::int64_t key) {
  const std::int64_t chunk = key / kernels::kChunkKeys;
  if (chunk == chunk_) return;
  end_chunk();
  chunk_ = chunk;
}

template <class Real>
void RunningSoftmax<Real>::begin_moved(std::span<RunningSoftmax> from, std::span<RunningSoftmax> to,
                                       std::int64_t key) {
  bool has_part = false;
  bool has_total = false;
  for (RunningSoftmax& panel : from) {
    panel.end_chunks_before(key);
    has_part |= panel.has_part_;
    has_total |= panel.has_total_;
  }
  for (RunningSoftmax& panel : to) {
    panel.has_part_ = panel.has_total_ = false;
    panel.chunk_ = key / kernels::kChunkKeys;
    // Makes an empty total if there is one to move; otherwise one state is enough.
    if (has_total) {
      panel.begin_chunk();
      panel.end_chunk();
    }
    if (has_part) panel.begin_chunk();
  }
}

template <class Real>
void RunningSoftmax<Real>::take_row(std::int32_t r, const RunningSoftmax& from,
                                    std::int32_t from_r) {
  const auto take = [&](const kernels::BasicPanelState<Real>& target,
                        const kernels::BasicPanelState<Real>& source) {
    target.minus_m[r] = source.minus_m[from_r];
    target.threshold[r] = source.threshold[from_r];
    target.sum[r] = source.sum[from_r];
    const std::int64_t width = rows_.width();
    const std::int64_t from_width = from.rows_.width();
    for (std::int64_t d = 0; d < schedule_.value_dim; ++d) {
      target.out[d * width + r] = source.out[d * from_width + from_r];
    }
  };
  if (has_part_ && from.has_part_) take(part_, from.part_);
  if (has_total_ && from.has_total_) take(total_, from.total_);
}

template <class Real>
void RunningSoftmax<Real>::end_chunk() {
  if (!has_part_) return;
  has_part_ = false;
  if (has_total_) {
    schedule_.table->merge(rows_.panel(), part_, total_);
  } else {
    has_total_ = true;
    std::swap(part_, total_);
  }
}

template <class Real>
void RunningSoftmax<Real>::take_over(const SavedChunk<Real>& chunk) {
  if (!*chunk.is_seen) return;
  part_ = chunk.state;
  has_part_ = true;
  end_chunk();
}

template <class Real>
void RunningSoftmax<Real>::resume(const RowStates<Real>& states) {
  begin_chunk();
  const std::int32_t value_dim = rows_.panel().value_dim;
  std::array<const Real*, kernels::kMaxPanelWidth> rows{};
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    const Real* row = states.row(rows_.head(r), rows_.query(r));
    part_.minus_m[r] = row[0];
    part_.threshold[r] = row[1];
    part_.sum[r] = row[2];
    rows[static_cast<std::size_t>(r)] = row + RowStates<Real>::kOut;
    if (schedule_.has_few_rows)
      std::copy_n(row + RowStates<Real>::kOut, value_dim, out_of(part_, r));
  }
  if (!schedule_.has_few_rows) {
    schedule_.table->pack(rows.data(), rows_.width(), value_dim, 1, part_.out);
  }
  end_chunk();
}

template <class Real>
void RunningSoftmax<Real>::leave(const RowStates<Real>& states) {
  if (!has_total_) {
    begin_chunk();
    end_chunk();
  }
  const std::int32_t value_dim = rows_.panel().value_dim;
  alignas(64) std::array<Real, kernels::kMaxPanelWidth> factors;
  factors.fill(1);
  std::array<Real*, kernels::kMaxPanelWidth> rows{};
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    Real* row = states.row(rows_.head(r), rows_.query(r));
    row[0] = total_.minus_m[r];
    row[1] = total_.threshold[r];
    row[2] = total_.sum[r];
    rows[static_cast<std::size_t>(r)] = row + RowStates<Real>::kOut;
    if (schedule_.has_few_rows)
      std::copy_n(out_of(total_, r), value_dim, row + RowStates<Real>::kOut);
  }
  if (!schedule_.has_few_rows) {
    schedule_.table->unpack(total_.out, rows_.width(), value_dim, factors.data(), rows.data());
  }
}

// Row r of the output of a decode panel.
template <class Real>
Real* RunningSoftmax<Real>::out_of(const kernels::BasicPanelState<Real>& state,
                                   std::int32_t r) const {
  return state.out + r * (schedule_.out_size() / schedule_.panel_rows);
}

template <class Real>
bool RunningSoftmax<Real>::is_finite() const {
  return !has_total_ || schedule_.table->is_finite(rows_.panel(), total_);
}

template <class Real>
void RunningSoftmax<Real>::restart_guarded() {
  options_.guarded = true;
  has_part_ = has_total_ = false;
  chunk_ = -1;
}

template <class Real>
void RunningSoftmax<Real>::write(const ForwardCall<Real>& job,
                                 const Normalisers& normalisers) const {
  if (kept_.exists()) kept_.set_width(rows_.width());
  const bool is_real = job.out.type == data_type_of<Real>();
  const std::int64_t value_dim = job.request->value_dim();
  std::array<Real*, kernels::kMaxPanelWidth> rows;
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    std::byte* row = job.out.row(rows_.batch(), rows_.head(r), rows_.query(r));
    rows[static_cast<std::size_t>(r)] =
        is_real ? reinterpret_cast<Real*>(row) : staged_rows_ + r * value_dim;
  }
  std::fill(rows.begin() + rows_.num_rows(), rows.begin() + rows_.width(), nullptr);
  if (!job.lse.empty() || !job.lse_low.empty()) {
    for (std::int32_t r = 0; r < rows_.num_rows(); ++r) write_lse(job, r, normalisers.lse(r));
  }
  if (has_total_) {
    const auto unpack =
        schedule_.has_few_rows ? schedule_.table->unpack_rows : schedule_.table->unpack;
    unpack(total_.out, rows_.width(), rows_.panel().value_dim, normalisers.factor.data(),
           rows.data());
  } else {
    for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
      std::fill_n(rows[static_cast<std::size_t>(r)], value_dim, Real{0});
    }
  }
  if (is_real) return;
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    write_narrow_row(*schedule_.table, job, rows_.batch(), rows_.row(r),
                     rows[static_cast<std::size_t>(r)]);
  }
}

template <class Real>
std::int32_t RunningSoftmax<Real>::lost_rows(const Request<Real>& request,
                                             const Normalisers& normalisers,
                                             std::span<RowIndex> rows) const {
  // In most panels this quick check finds that no row is lost.
  bool may_be_lost = false;
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    may_be_lost |= normalisers.sum[i] == 0 || std::abs(normalisers.m[i]) > kLargestOffset<Real>;
  }
  if (!may_be_lost) return 0;
  std::int32_t count = 0;
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    if (is_lost(request, normalisers, r)) {
      rows[static_cast<std::size_t>(count++)] = rows_.row(r);
    }
  }
  return count;
}

// If the sum is 0, plain kernels cannot tell a score of −infinity from one whose exponent is.
template <class Real>
bool RunningSoftmax<Real>::is_lost(const Request<Real>& request, const Normalisers& normalisers,
                                   std::int32_t r) const {
  const auto i = static_cast<std::size_t>(r);
  if (normalisers.sum[i] != 0) return std::abs(normalisers.m[i]) > kLargestOffset<Real>;
  const bool has_sink = request.sinks && (*request.sinks)(rows_.head_place(r)) != -kInfinity<Real>;
  const bool may_be_seen =
      has_total_ && rows_.sees_any(r) &&
      (!rows_.keeps_scores() || total_.threshold[r] == kernels::kBeyondRangeOf<Real>);
  return has_sink || may_be_seen;
}

template <class Real>
double RunningSoftmax<Real>::Normalisers::lse(std::int32_t r) const {
  const auto i = static_cast<std::size_t>(r);
  if (sum[i] == 0) return -kInfinity<double>;
  return double{m[i]} * unit + elementary::log2(static_cast<double>(sum[i])) * std::numbers::ln2;
}

template <class Real>
void RunningSoftmax<Real>::write_lse(const ForwardCall<Real>& job, std::int32_t r,
                                     double lse) const {
  const auto rounded = static_cast<Real>(lse);
  const auto put = [&](const TensorView<Real>& target, Real number) {
    if (!target.empty()) target(rows_.batch(), rows_.head(r), rows_.query(r)) = number;
  };
  put(job.lse, rounded);
  put(job.lse_low, std::isfinite(rounded) ? static_cast<Real>(lse - double{rounded}) : Real{0});
}

template <class Real>
typename RunningSoftmax<Real>::Normalisers RunningSoftmax<Real>::normalisers(
    const Request<Real>& request) const {
  Normalisers found;
  // Scores that are kept were multiplied by a rounded log2 e.
  found.unit = rows_.keeps_scores() ? 1 / double{std::numbers::log2e_v<Real>} : std::numbers::ln2;
  std::fill(found.factor.begin(), found.factor.begin() + rows_.width(), Real{0});
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    Real sum = has_total_ ? total_.sum[r] : 0;
    // Weights are meaningless then, and the row is computed again, also if all of them became 0.
    if (has_total_ && std::abs(total_.minus_m[r]) > kLargestOffset<Real>) sum = 1;
    found.sum[i] = sum;
    found.m[i] = sum == 0 ? -kInfinity<Real> : -total_.minus_m[r];
    found.factor[i] = (sum == 0 ? Real{0} : Real{1}) / (sum == 0 ? Real{1} : sum);
  }
  if (request.sinks) add_sinks(*request.sinks, found);
  return found;
}

template <class Real>
void RunningSoftmax<Real>::add_sinks(TensorView<const Real> sinks, Normalisers& normalisers) const {
  for (std::int32_t r = 0; r < rows_.num_rows(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    const Real sink = sinks(rows_.head_place(r)) * std::numbers::log2e_v<Real>;
    if (sink == -kInfinity<Real>) continue;
    // Brings both to units of 2^largest.
    Real& m = normalisers.m[i];
    Real& sum = normalisers.sum[i];
    const Real largest = std::max(m, sink);
    const Real scale = sum == 0 ? Real{0} : elementary::exp2(m - largest);
    sum = sum * scale + elementary::exp2(sink - largest);
    m = largest;
    normalisers.factor[i] = scale / sum;
  }
}

template class RunningSoftmax<float>;
template class RunningSoftmax<double>;

}}}  // namespace heed::v0::engine
