// Queries that are the nodes of a tree: Mask::tree.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "attention/masks/mask_part.h"
#include "heed/attention/mask.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

using detail::IrregularPart;
using detail::RowGroup;
using detail::ScoreIndex;
using kernels::Visibility;

// A tree whose nodes are numbered so that each comes after its parent.
class Ancestry {
 public:
  // parents[i] is −1 or a node before i.
  explicit Ancestry(std::vector<std::int64_t> parents)
      : parents_(std::move(parents)), first_(parents_.size()), last_(parents_.size()) {
    // Orders the nodes so that all descendants of a node follow it. Descendants are counted from
    // the last node back; then each subtree takes its places after its parent.
    std::vector<std::int64_t> count(parents_.size(), 1);
    for (std::size_t i = parents_.size(); i-- > 0;) {
      if (parents_[i] >= 0) count[at(parents_[i])] += count[i];
    }
    std::vector<std::int64_t> next(parents_.size());  // the place of the next child of a node
    std::int64_t next_root = 0;
    for (std::size_t i = 0; i < parents_.size(); ++i) {
      std::int64_t& place = parents_[i] >= 0 ? next[at(parents_[i])] : next_root;
      first_[i] = place;
      last_[i] = place + count[i];
      next[i] = place + 1;
      place += count[i];
    }
  }

  std::int64_t size() const { return static_cast<std::int64_t>(parents_.size()); }

  const std::vector<std::int64_t>& parents() const { return parents_; }

  // True if `above` is `node` or one of its ancestors.
  bool is_on_path(std::int64_t above, std::int64_t node) const {
    return first_[at(above)] <= first_[at(node)] && first_[at(node)] < last_[at(above)];
  }
  // True if any node of `range` is `node` or one of its ancestors.
  bool is_on_path(RowRange range, std::int64_t node) const {
    while (node >= range.end) node = parents_[at(node)];
    return node >= range.begin && node >= 0;
  }

 private:
  static std::size_t at(std::int64_t node) { return static_cast<std::size_t>(node); }

  std::vector<std::int64_t> parents_;
  std::vector<std::int64_t> first_;  // the place of a node in that order
  std::vector<std::int64_t> last_;   // the end of the places of its descendants
};

class TreeMask final : public IrregularPart {
 public:
  TreeMask(std::vector<std::int64_t> parents, Alignment alignment)
      : nodes_(std::move(parents)), alignment_(std::move(alignment)) {}

  void check(const ScoreShape& shape) const override {
    alignment_.check("tree", shape);
    if (nodes_.size() > shape.q_len) {
      throw InvalidArgument(
          fmt::format("tree: {} nodes but q_len is {}", nodes_.size(), shape.q_len));
    }
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      const std::int64_t first = first_key(shape, b);
      if (first >= 0 && first + nodes_.size() <= shape.kv_len) continue;
      throw InvalidArgument(
          fmt::format("tree: the nodes of batch entry {} stand at keys {} to {}, expected 0 to {}",
                      b, first, first + nodes_.size(), shape.kv_len));
    }
  }
  std::string description() const override {
    std::string aligned = alignment_.description();
    if (aligned.empty()) aligned = "square";
    if (alignment_.is_bottom_right()) aligned.clear();  // unless another is named
    const char* between = aligned.empty() || nodes_.size() == 0 ? "" : ", ";
    return fmt::format("tree({}{}{})", fmt::join(nodes_.parents(), ", "), between, aligned);
  }
  const Alignment* alignment() const override { return &alignment_; }

  // The keys up to the query's own; hide() removes those of other branches.
  RowRange range(const ScoreShape& shape, const AttentionRow& row) const override {
    return {0, row.query + alignment_.resolve(shape, row.batch) + 1};
  }
  bool visible(const ScoreShape& shape, const ScoreIndex& at) const override {
    const std::int64_t node = at.q - first_query(shape);
    const std::int64_t other = at.k - first_key(shape, at.batch);
    return node < 0 || other < 0 || other > node || nodes_.is_on_path(other, node);
  }
  Visibility visibility(const ScoreShape& shape, const RowGroup& rows,
                        RowRange keys) const override {
    const std::int64_t first = first_key(shape, rows.batch);
    if (keys.end <= first) return Visibility::kAll;
    if (keys.begin < first) return Visibility::kMixed;
    const std::int64_t to_node = first_query(shape) + shape.query_offset[rows.batch];
    const bool is_seen = std::any_of(rows.q_idx, rows.q_idx + rows.num_rows, [&](auto position) {
      return nodes_.is_on_path({keys.begin - first, keys.end - first},
                               std::max<std::int64_t>(position - to_node, -1));
    });
    return is_seen ? Visibility::kMixed : Visibility::kNone;
  }

 private:
  // The query of node 0.
  std::int64_t first_query(const ScoreShape& shape) const { return shape.q_len - nodes_.size(); }
  std::int64_t first_key(const ScoreShape& shape, std::int64_t batch) const {
    return first_query(shape) + alignment_.resolve(shape, batch);
  }

  Ancestry nodes_;
  Alignment alignment_;
};

}  // namespace

Mask Mask::tree(std::vector<std::int64_t> parents, Alignment alignment) {
  for (std::size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] >= -1 && parents[i] < static_cast<std::int64_t>(i)) continue;
    throw InvalidArgument(fmt::format(
        "Mask::tree: parents[{}] is {}, expected -1 or a node before it", i, parents[i]));
  }
  return Mask(std::make_shared<TreeMask>(std::move(parents), std::move(alignment)));
}

}}  // namespace heed::v0
