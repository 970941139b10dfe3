#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

#include "attention/fused/statistics.h"
#include "attention/fused/weight_block.h"
#include "heed/parallel.h"

namespace heed::inline v0::fused {

namespace {

class ChosenRows {
 public:
  ChosenRows(const Job& job, const Schedule& schedule, std::span<const AttentionRow> rows,
             TensorView<float> weights)
      : job_(job), schedule_(schedule), rows_(rows), weights_(weights), order_(rows.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    // Neighbours share a key head and see almost the same keys.
    std::sort(order_.begin(), order_.end(), [this](std::size_t a, std::size_t b) {
      const auto place = [this](const AttentionRow& row) {
        return std::tuple(row.batch, kv_head(row), row.query, row.head);
      };
      return place(rows_[a]) < place(rows_[b]);
    });
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (blocks_.empty() || !fits(blocks_.back(), i)) blocks_.push_back({i, i});
      ++blocks_.back().end;
    }
  }

  void compute() const {
    const auto count = static_cast<std::int64_t>(blocks_.size());
    parallel_for(0, count, 1, [this](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) compute(blocks_[static_cast<std::size_t>(i)]);
    });
  }

 private:
  // Rows of one key head: the places begin ≤ i < end of order_.
  struct Block {
    std::size_t begin;
    std::size_t end;
  };

  std::int64_t kv_head(const AttentionRow& row) const { return job_.terms->kv_head(row.head); }

  bool fits(const Block& block, std::size_t i) const {
    const AttentionRow& first = rows_[order_[block.begin]];
    const AttentionRow& row = rows_[order_[i]];
    return first.batch == row.batch && kv_head(first) == kv_head(row) &&
           static_cast<std::int64_t>(i - block.begin) < schedule_.block_rows();
  }

  void compute(const Block& block) const {
    std::vector<RowIndex> rows;
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const AttentionRow& row = rows_[order_[i]];
      rows.push_back({static_cast<std::int32_t>(row.head), static_cast<std::int32_t>(row.query)});
    }
    auto memory = memory_for([this](Workspace& all) { WeightBlock(schedule_, all); });
    Workspace workspace = workspace_in(memory);
    WeightBlock weights(schedule_, workspace);
    weights.start(job_, rows_[order_[block.begin]].batch, rows);
    weights.visit([&](std::size_t panel, const kernels::WeightTile& tile) {
      write(tile, block.begin + panel * static_cast<std::size_t>(schedule_.panel_rows),
            weights.rows(panel).num_rows());
    });
  }

  // Writes a tile of the rows that stand at `first` of order_ and after it.
  void write(const kernels::WeightTile& tile, std::size_t first, std::int32_t num_rows) const {
    alignas(64) std::array<float, kernels::kMaxPanelWidth> ones;
    std::array<float*, kernels::kMaxPanelWidth> out{};
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

  const Job& job_;
  const Schedule& schedule_;
  std::span<const AttentionRow> rows_;
  TensorView<float> weights_;
  std::vector<std::size_t> order_;
  std::vector<Block> blocks_;
};

}  // namespace

void weights_of_rows(const Job& job, const Schedule& schedule, std::span<const AttentionRow> rows,
                     TensorView<float> weights) {
  ChosenRows(job, schedule, rows, weights).compute();
}

}  // namespace heed::inline v0::fused
