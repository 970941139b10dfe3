// The rows of one panel: where they come from, what they see, and their state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "attention/kernels/kernels.h"
#include "attention/problem.h"
#include "heed/tensor.h"

namespace heed::inline v0::fused {

// Memory of one worker, carved from one allocation in pieces that start at 64-byte boundaries.
class Workspace {
 public:
  explicit Workspace(std::byte* memory) : memory_(memory) {}

  float* floats(std::int64_t count) {
    float* taken = memory_ == nullptr ? nullptr : reinterpret_cast<float*>(memory_ + used_);
    used_ += (static_cast<std::size_t>(count) * sizeof(float) + 63) / 64 * 64;
    return taken;
  }

  // What was taken so far: a workspace without memory only measures.
  std::size_t bytes() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

// Rows of one key head. Row r of these is query r / group of head kv_head · group + r % group,
// where group is the number of heads that share the key head: neighbours see almost the same keys.
class PanelRows {
 public:
  PanelRows(const Problem<float>& problem, const kernels::KernelTable& table, Workspace& workspace);

  // Prepares for `count` rows from `first` on, at most 3 · table.lanes, with nothing seen yet.
  void start(std::int64_t batch, std::int64_t kv_head, std::int64_t first, std::int64_t count);

  // Adds a tile of keys. `scores` is scratch memory for it, [kTileKeys][3 · lanes], and so is
  // `dropout` where weights are dropped.
  void add(const kernels::Tile& tile, float* scores, float* dropout);

  // Puts what was seen since the last call into the total.
  void end_chunk();

  // Whether every row's result is a finite number.
  bool is_finite() const;
  // Starts again, multiplying only by values that are seen.
  void restart_guarded();

  void write(TensorView<float> out, TensorView<float> lse) const;

  const kernels::Panel& panel() const { return panel_; }

 private:
  // The denominator of a row's softmax, sum · 2^m, and what turns its output into the result.
  struct Normaliser {
    float factor;
    float m;
    float sum;

    float lse() const;
  };

  Normaliser normaliser_of(std::int32_t r) const;
  detail::ScoreTile score_tile(const kernels::Tile& tile, float* scores) const;
  void modify(const detail::ScoreTile& tile) const;
  void cap(const detail::ScoreTile& tile) const;
  void add_bias(const detail::ScoreTile& tile) const;
  void fill_dropout(const detail::ScoreTile& tile, float* dropout) const;
  void find_ranges();
  void clear(const kernels::PanelState& state) const;
  void forget_scores(const kernels::PanelState& state) const;

  const Problem<float>& problem_;
  const kernels::KernelTable& table_;
  bool modifies_scores_;
  kernels::Panel panel_;
  kernels::PanelState part_;
  kernels::PanelState total_;
  float* query_;
  std::int64_t batch_ = 0;
  std::int32_t num_rows_ = 0;
  std::int32_t width_ = 0;
  std::array<std::int32_t, kernels::kMaxPanelWidth> heads_{};
  std::array<std::int32_t, kernels::kMaxPanelWidth> queries_{};  // index within the call
  std::array<std::int32_t, kernels::kMaxPanelWidth> positions_{};
  std::array<std::int32_t, kernels::kMaxPanelWidth> begin_{};
  std::array<std::int32_t, kernels::kMaxPanelWidth> end_{};
};

}  // namespace heed::inline v0::fused
