// The keys that the queries of a text see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/masks/bound_mask.h"
#include "heed/attention.h"

namespace heed { inline namespace v0 { namespace inspect {

// The visible keys of some adjacent queries of one head.
class VisibleRows {
 public:
  VisibleRows() = default;
  VisibleRows(const BoundMask& mask, std::int64_t head, RowRange queries)
      : length_(mask.shape().kv_len) {
    for (std::int64_t q = queries.begin; q < queries.end; ++q) add(mask, head, q);
  }

  bool sees(std::int64_t row, std::int64_t key) const {
    return seen_[static_cast<std::size_t>(row * length_ + key)];
  }
  // The number of keys that a row sees.
  std::int64_t count(std::int64_t row) const { return counts_[static_cast<std::size_t>(row)]; }

 private:
  void add(const BoundMask& mask, std::int64_t head, std::int64_t query) {
    std::int64_t count = 0;
    for (std::int64_t key = 0; key < length_; ++key) {
      const detail::ScoreIndex cell{0, head, query, key};
      const bool sees =
          mask.visible(cell) &&
          !(mask.adds() && mask.added(cell) == -std::numeric_limits<float>::infinity());
      seen_.push_back(sees);
      count += sees ? 1 : 0;
    }
    counts_.push_back(count);
  }

  std::int64_t length_ = 0;
  std::vector<bool> seen_;
  std::vector<std::int64_t> counts_;
};

// The mask of attention() for one text of n tokens.
class MaskOfText {
 public:
  MaskOfText(const AttentionOptions& options, std::int64_t num_heads, std::int64_t length)
      : mask_(options.mask, {.num_heads = num_heads,
                             .q_len = length,
                             .kv_len = length,
                             .query_offset = options.query_offset}) {}

  // True if heads may see different keys; for irregular masks this is unknown.
  bool depends_on_head() const { return !mask_.is_structural() || mask_.depends_on_head(); }
  VisibleRows rows(std::int64_t head, RowRange queries) const { return {mask_, head, queries}; }

 private:
  BoundMask mask_;
};

}}}  // namespace heed::v0::inspect
