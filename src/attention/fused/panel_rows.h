// The rows of one panel: where they come from, what they see, and what happens to their scores.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "attention/fused/job.h"
#include "attention/kernels/kernels.h"
#include "attention/problem.h"

namespace heed::inline v0::fused {

// A row of attention within one batch entry.
struct RowIndex {
  std::int32_t head;
  std::int32_t query;  // index within the call
};

// Whether something happens to scores that the plain kernel does not know.
bool modifies_scores(const Terms<float>& terms);

// Memory for one tile, which panels share.
struct ScoreScratch {
  ScoreScratch() = default;
  ScoreScratch(const Schedule& schedule, Workspace& workspace);

  float* scores = nullptr;  // [keys][panel_rows]
  float* mask = nullptr;    // the same, where a mask is irregular
  // Unless null, score() leaves here what it multiplied small changes of query · key by.
  float* derivatives = nullptr;
};

// Rows of one key head. Row r of these is query r / group of head kv_head · group + r % group,
// where group is the number of heads that share the key head: neighbours see almost the same keys.
// Whoever wants others lists them.
class PanelRows {
 public:
  PanelRows(const Schedule& schedule, Workspace& workspace);

  // Becomes `count` rows from `first` on, at most as many as a panel holds. `scratch` is memory for
  // the rows as floats, where the query is of another type.
  void start(const Job& job, std::int64_t batch, std::int64_t kv_head, RowRange rows,
             float* scratch);
  // Becomes these rows, which share a key head.
  void start(const Job& job, std::int64_t batch, std::span<const RowIndex> rows, float* scratch);

  // Describes a tile's scores, [keys][width]; empty when no row sees any of its keys.
  detail::ScoreTile score_tile(const kernels::Tile& tile, float* scores) const;
  // Fills a tile with scores in natural units, after softcap, score_mod, ALiBi, bias and irregular
  // masks.
  // Returns false, with nothing computed, where irregular masks hide all of it.
  bool score(const kernels::Tile& tile, const ScoreScratch& scratch) const;

  // Whether scores are modified, which the plain kernel does not know. If so, the query is
  // multiplied by scale, otherwise by scale · log2 e.
  bool modifies_scores() const { return modifies_scores_; }
  // The rows for the kernels, without a state.
  const kernels::Panel& panel() const { return panel_; }
  bool sees(const kernels::Tile& tile) const {
    return panel_.any_begin < tile.first_key + tile.num_keys && panel_.any_end > tile.first_key;
  }
  // Makes the offsets of a state those of rows that have seen nothing yet, in whole vectors.
  void forget_offsets(const kernels::PanelState& state) const;
  // Whether row r will see a key.
  bool sees_any(std::int32_t r) const { return begin_[index(r)] < end_[index(r)]; }

  std::int32_t num_rows() const { return num_rows_; }
  std::int32_t width() const { return width_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t head(std::int32_t r) const { return heads_[index(r)]; }
  std::int64_t query(std::int32_t r) const { return queries_[index(r)]; }

 private:
  static std::size_t index(std::int32_t r) { return static_cast<std::size_t>(r); }

  void resize(const Job& job, std::int64_t batch, std::int64_t num_rows);
  void place(std::int32_t r, std::int64_t head, std::int64_t query);
  void finish(const Job& job, float* scratch);
  void pack(const Job& job, float* scratch);
  void find_ranges();
  void find_bias();
  void modify(const detail::ScoreTile& tile) const;
  void add_bias(const detail::ScoreTile& tile) const;

  using PerRow = std::array<std::int32_t, kernels::kMaxPanelWidth>;

  const kernels::KernelTable& table_;
  std::int32_t lanes_;  // 1 where a panel is a single row
  bool keeps_scores_;
  const Terms<float>* terms_ = nullptr;
  float* packed_query_;
  bool modifies_scores_ = false;
  kernels::Panel panel_;
  kernels::DropoutRows dropout_;
  std::int64_t batch_ = 0;
  std::int32_t num_rows_ = 0;
  std::int32_t width_ = 0;
  PerRow heads_;
  PerRow queries_;  // index within the call
  PerRow positions_;
  PerRow begin_;
  PerRow end_;
  alignas(64) std::array<float, kernels::kMaxPanelWidth> slopes_;  // of ALiBi
  std::array<const float*, kernels::kMaxPanelWidth> bias_;         // of key 0
};

}  // namespace heed::inline v0::fused
