#include "attention/masks/all_of.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace heed { inline namespace v0 { namespace detail {

using kernels::kTileKeys;
using kernels::Visibility;

void AllOf::check(const ScoreShape& shape) const {
  for (const auto& part : parts_) part->check(shape);
}

std::string AllOf::description() const {
  std::vector<std::string> names;
  names.reserve(parts_.size());
  for (const auto& part : parts_) {
    const std::string name = part->description();
    names.push_back(part->is_alternative() && parts_.size() > 1 ? "(" + name + ")" : name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, " & "));
}

const Alignment* AllOf::alignment() const {
  const Alignment* found = nullptr;
  for (const auto& part : parts_) {
    const Alignment* one = part->alignment();
    if (one != nullptr && (found == nullptr || !one->is_bottom_right())) found = one;
  }
  return found;
}

bool AllOf::is_structural() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part->is_structural(); });
}

bool AllOf::depends_on_head() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part->depends_on_head(); });
}

bool AllOf::calls_function() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part->calls_function(); });
}

bool AllOf::adds() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->adds(); });
}

RowRange AllOf::range(const ScoreShape& shape, const AttentionRow& row) const {
  RowRange keys{0, shape.kv_len};
  for (const auto& part : parts_) keys = keys & part->range(shape, row);
  return keys.begin < keys.end ? keys : RowRange{};
}

void AllOf::row_ranges(const ScoreShape& shape, const RowGroup& rows, RowRange* found) const {
  std::fill_n(found, rows.num_rows, RowRange{0, shape.kv_len});
  for (const auto& part : parts_) part->narrow(shape, rows, found);
  for (std::int32_t r = 0; r < rows.num_rows; ++r) {
    if (found[r].begin >= found[r].end) found[r] = {};
  }
}

GroupRanges AllOf::ranges(const ScoreShape& shape, const RowGroup& rows) const {
  GroupRanges found{{0, shape.kv_len}, {0, shape.kv_len}};
  for (const auto& part : parts_) {
    const GroupRanges one = part->ranges(shape, rows);
    found = {found.of_all & one.of_all, found.of_any & one.of_any};
  }
  return found;
}

bool AllOf::visible(const ScoreShape& shape, const ScoreIndex& at) const {
  const RowRange keys = range(shape, {at.batch, at.head, at.q});
  return at.k >= keys.begin && at.k < keys.end &&
         std::all_of(parts_.begin(), parts_.end(),
                     [&](const auto& part) { return part->visible(shape, at); });
}

float AllOf::added(const ScoreIndex& at) const {
  float sum = 0;
  for (const auto& part : parts_) sum += part->added(at);
  return sum;
}

std::int64_t AllOf::next_key(const ScoreShape& shape, const RowGroup& rows,
                             std::int64_t key) const {
  // All parts must agree on a tile: when one answers with a later key, all others are asked for
  // that key.
  const MaskPart* mover = nullptr;
  do {
    for (const auto& part : parts_) {
      if (part.get() == mover) return key;
      const std::int64_t next = part->next_key(shape, rows, key) / kTileKeys * kTileKeys;
      if (next <= key) continue;
      key = next;
      mover = part.get();
    }
  } while (mover != nullptr && key < shape.kv_len);
  return key;
}

Visibility AllOf::visibility(const ScoreShape& shape, const RowGroup& rows, RowRange keys) const {
  auto all = Visibility::kAll;
  for (const auto& part : parts_) {
    const auto one = part->visibility(shape, rows, keys);
    if (one == Visibility::kNone) return one;
    if (one == Visibility::kMixed) all = one;
  }
  return all;
}

void AllOf::see(const ScoreShape& shape, const RowGroup& rows, RowRange keys, KeyBits* seen) const {
  const std::int64_t first = tile_of(keys);
  const GroupRanges found = ranges(shape, rows);
  if ((keys & found.of_all) == keys) {
    std::fill_n(seen, rows.num_rows, KeyBits::between(keys.begin - first, keys.end - first));
  } else if (keys.begin >= found.of_any.end || keys.end <= found.of_any.begin) {
    std::fill_n(seen, rows.num_rows, KeyBits());
    return;
  } else {
    const std::int64_t offset = shape.query_offset[rows.batch];
    for (std::int32_t r = 0; r < rows.num_rows; ++r) {
      const RowRange of_row = range(shape, {rows.batch, rows.heads[r], rows.q_idx[r] - offset});
      seen[r] = KeyBits::between(of_row.begin - first, of_row.end - first);
    }
  }
  hide(shape, rows, keys, seen);
}

std::int64_t AllOf::query_block() const {
  return first_above_one([](const MaskPart& part) { return part.query_block(); });
}

std::int64_t AllOf::query_step() const {
  return first_above_one([](const MaskPart& part) { return part.query_step(); });
}

std::int64_t AllOf::query_step_of_tiles() const {
  return first_above_one([](const MaskPart& part) { return part.query_step_of_tiles(); });
}

std::int64_t AllOf::key_step(const ScoreShape& shape, const QueryStretch& queries,
                             RowRange keys) const {
  return first_above_one([&](const MaskPart& part) { return part.key_step(shape, queries, keys); });
}

bool AllOf::may_show(const ScoreShape& shape, const QueryStretch& queries, RowRange keys) const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [&](const auto& part) { return part->may_show(shape, queries, keys); });
}

template <class Ask>
std::int64_t AllOf::first_above_one(const Ask& ask) const {
  for (const auto& part : parts_) {
    const std::int64_t answer = ask(*part);
    if (answer > 1) return answer;
  }
  return 1;
}

}}}  // namespace heed::v0::detail
