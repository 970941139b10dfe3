#include "attention/engine/weight_block.h"

#include <algorithm>

namespace heed { inline namespace v0 { namespace engine {

template <class Real>
WeightBlock<Real>::WeightBlock(const Schedule<Real>& schedule, const WeightBlockMemory<Real>& parts,
                               std::byte* memory)
    : most_rows_(schedule.panel_rows),
      staging_(parts.staging.in(memory)),
      scratch_(parts.scratch.in(memory)),
      staged_query_(parts.query.in(memory)) {
  panels_.reserve(static_cast<std::size_t>(schedule.panels_per_block));
  for (std::int32_t i = 0; i < schedule.panels_per_block; ++i) {
    panels_.emplace_back(schedule, parts.panels.parts, parts.panels.at(memory, i));
  }
}

template <class Real>
void WeightBlock<Real>::start(const Call<Real>& job, std::int64_t batch,
                              std::span<const RowIndex> rows) {
  job_ = &job;
  batch_ = batch;
  kv_head_ = job.request->kv_head(rows.front().head);
  const auto most = static_cast<std::size_t>(most_rows_);
  num_panels_ = 0;
  for (std::size_t first = 0; first < rows.size(); first += most) {
    WeightPanel<Real>& panel = panels_[num_panels_++];
    const auto some = rows.subspan(first, std::min(most, rows.size() - first));
    panel.panel_rows.place(job, batch, some);
    panel.panel_rows.pack(staged_query_);
    panel.weights.start(panel.panel_rows, *job.request);
  }
  walk([&](const kernels::BasicTile<Real>& tile) {
    for (std::size_t i = 0; i < num_panels_; ++i) {
      if (panels_[i].panel_rows.sees(tile)) panels_[i].weights.add(tile, scratch_);
    }
  });
  for (std::size_t i = 0; i < num_panels_; ++i) panels_[i].weights.finish();
}

template class WeightBlock<float>;
template class WeightBlock<double>;

}}}  // namespace heed::v0::engine
