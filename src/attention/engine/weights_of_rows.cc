#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

#include "attention/engine/passes.h"
#include "attention/engine/weight_block.h"
#include "attention/engine/work_queue.h"

namespace heed { inline namespace v0 { namespace engine {

namespace {

template <class Real>
struct ChosenRowsMemory {
  Layout layout;
  Repeated<WeightBlockMemory<Real>> workers;

  explicit ChosenRowsMemory(const Schedule<Real>& schedule)
      : workers(schedule, schedule.workers, layout) {}
};

template <class Real>
class ChosenRows {
 public:
  ChosenRows(const Call<Real>& job, const Schedule<Real>& schedule,
             std::span<const AttentionRow> rows, TensorView<Real> weights)
      : job_(job), schedule_(schedule), rows_(rows), weights_(weights), order_(rows.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    // Neighbours in this order share a key head and see almost the same keys.
    std::sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
      const auto place = [this](const AttentionRow& row) {
        return std::tuple(row.batch, kv_head(row), row.query, row.head);
      };
      return place(rows_[a]) < place(rows_[b]);
    });
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (groups_.empty() || !fits(groups_.back(), i)) groups_.push_back({i, i});
      ++groups_.back().end;
    }
  }

  void compute() const {
    const ChosenRowsMemory<Real> parts(schedule_);
    const Arena arena(parts.layout);
    const auto start = [&](std::int64_t w) {
      return WeightBlock<Real>(schedule_, parts.workers.parts, parts.workers.at(arena.memory(), w));
    };
    deal_out(static_cast<std::int64_t>(groups_.size()), schedule_.workers, start,
             [&](WeightBlock<Real>& block, std::int64_t i) {
               compute(groups_[static_cast<std::size_t>(i)], block);
             });
  }

 private:
  // Rows of one key head: indices begin ≤ i < end of order_.
  struct Group {
    std::size_t begin;
    std::size_t end;
  };

  std::int64_t kv_head(const AttentionRow& row) const { return job_.request->kv_head(row.head); }

  bool fits(const Group& group, std::size_t i) const {
    const AttentionRow& first = rows_[order_[group.begin]];
    const AttentionRow& row = rows_[order_[i]];
    return first.batch == row.batch && kv_head(first) == kv_head(row) &&
           static_cast<std::int64_t>(i - group.begin) < schedule_.block_rows();
  }

  void compute(const Group& group, WeightBlock<Real>& block) const {
    std::vector<RowIndex> rows;
    for (std::size_t i = group.begin; i < group.end; ++i) {
      const AttentionRow& row = rows_[order_[i]];
      rows.push_back({static_cast<std::int32_t>(row.head), static_cast<std::int32_t>(row.query)});
    }
    block.start(job_, rows_[order_[group.begin]].batch, rows);
    block.visit([&](std::size_t panel, const kernels::BasicWeightTile<Real>& tile, const auto&) {
      write(tile, group.begin + panel * static_cast<std::size_t>(schedule_.panel_rows),
            block.rows(panel).num_rows());
    });
  }

  // Writes a tile of the rows from index `first` of order_ on.
  void write(const kernels::BasicWeightTile<Real>& tile, std::size_t first,
             std::int32_t num_rows) const {
    alignas(64) std::array<Real, kernels::kMaxPanelWidth> ones;
    std::array<Real*, kernels::kMaxPanelWidth> out{};
    ones.fill(1);
    for (std::int32_t r = 0; r < num_rows; ++r) {
      const auto row = static_cast<std::int64_t>(order_[first + static_cast<std::size_t>(r)]);
      out[static_cast<std::size_t>(r)] =
          weights_.data() + row * weights_.extent(1) + tile.first_key + tile.begin;
    }
    const std::int32_t width = tile.vectors * schedule_.table->lanes;
    schedule_.table->unpack(tile.weights + std::int64_t{tile.begin} * width, width,
                            tile.end - tile.begin, ones.data(), out.data());
  }

  const Call<Real>& job_;
  const Schedule<Real>& schedule_;
  std::span<const AttentionRow> rows_;
  TensorView<Real> weights_;
  std::vector<std::size_t> order_;
  std::vector<Group> groups_;
};

}  // namespace

template <class Real>
std::size_t weights_bytes(const Schedule<Real>& schedule) {
  return Arena::bytes_for(ChosenRowsMemory<Real>(schedule).layout);
}

template <class Real>
void weights_of_rows(const Call<Real>& job, const Schedule<Real>& schedule,
                     std::span<const AttentionRow> rows, TensorView<Real> weights) {
  ChosenRows<Real>(job, schedule, rows, weights).compute();
}

template std::size_t weights_bytes(const Schedule<float>&);
template std::size_t weights_bytes(const Schedule<double>&);
template void weights_of_rows(const Call<float>&, const Schedule<float>&,
                              std::span<const AttentionRow>, TensorView<float>);
template void weights_of_rows(const Call<double>&, const Schedule<double>&,
                              std::span<const AttentionRow>, TensorView<double>);

}}}  // namespace heed::v0::engine
