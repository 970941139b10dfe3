#include "attention/engine/backward_division.h"

#include <algorithm>

namespace heed { inline namespace v0 { namespace engine {

namespace {

// The number of groups to aim at, so that several threads have work. More would take memory, and
// time to add their sums.
constexpr std::int64_t kGroups = 8;

// The number of rows of a part for which it pays to have sums of its own.
constexpr std::int64_t kRowsPerPart = 512;

// The number of groups of batch entries, or of heads. Those that add to the same cells are one
// group.
std::int64_t groups_of(std::int64_t count, bool shares_cells, std::int64_t stride) {
  return shares_cells && stride == 0 ? std::min<std::int64_t>(count, 1) : count;
}

}  // namespace

BackwardDivision::BackwardDivision(const Rows& rows, RowRange batches, const Strides& cells)
    : first_batch_(batches.begin),
      batch_(batches.end - batches.begin),
      kv_heads_(rows.kv_heads),
      q_len_(rows.queries),
      shares_cells_(cells[2] != 0 && cells[3] != 0),
      groups_of_batch_(groups_of(batch_, shares_cells_, cells[0])),
      groups_of_heads_(groups_of(kv_heads_, shares_cells_, cells[1])) {
  const std::int64_t groups = std::max<std::int64_t>(
      groups_of_batch_ * groups_of(rows.all_kv_heads, shares_cells_, cells[1]), 1);
  const std::int64_t most = q_len_ * rows.group_size / kRowsPerPart;
  const std::int64_t wanted =
      std::max<std::int64_t>(std::min((kGroups + groups - 1) / groups, most), 1);
  const std::int64_t queries = (q_len_ + wanted - 1) / wanted;
  queries_per_part_ = std::max<std::int64_t>(
      (queries + rows.panel_rows - 1) / rows.panel_rows * rows.panel_rows, 1);
  parts_ = std::max<std::int64_t>((q_len_ + queries_per_part_ - 1) / queries_per_part_, 1);
}

BackwardTask BackwardDivision::task(std::int64_t head, std::int64_t part) const {
  const std::int64_t first = part * queries_per_part_;
  return {first_batch_ + head / kv_heads_,
          head % kv_heads_,
          part,
          {first, std::min(first + queries_per_part_, q_len_)}};
}

}}}  // namespace heed::v0::engine
