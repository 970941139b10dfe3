// Masks given as a sparse matrix of blocks: Mask::blocks.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "attention/masks/all_of.h"
#include "attention/masks/mask_part.h"
#include "heed/attention/block_layout.h"
#include "heed/attention/mask.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

using detail::AllOf;
using detail::IrregularPart;
using detail::KeyBits;
using detail::RowGroup;
using detail::ScoreIndex;
using kernels::Visibility;

constexpr const char* kBlocksName = "Mask::blocks";

class BlocksMask final : public IrregularPart {
 public:
  // `layout` has been checked.
  BlocksMask(BlockLayout layout, const Mask& partial)
      : layout_(std::move(layout)),
        partial_(partial),
        rows_((layout_.q_len + layout_.q_block - 1) / layout_.q_block) {}

  void check(const ScoreShape& shape) const override {
    if (shape.q_len != layout_.q_len || shape.kv_len != layout_.kv_len) {
      throw InvalidArgument(
          fmt::format("{}: the layout was made for q_len {} and kv_len {} but q_len is {} and "
                      "kv_len {}",
                      kBlocksName, layout_.q_len, layout_.kv_len, shape.q_len, shape.kv_len));
    }
    check_count("batch", layout_.batch, shape.batch);
    check_count("num_heads", layout_.num_heads, shape.num_heads);
    partial_.check(shape);
  }
  std::string description() const override {
    const std::int64_t columns = (layout_.kv_len + layout_.kv_block - 1) / layout_.kv_block;
    const std::string within =
        layout_.partial.empty() || partial_.size() == 0 ? "" : '(' + partial_.description() + ')';
    return fmt::format("blocks[{} of {}, {} x {}]{}", layout_.columns.size(),
                       layout_.batch * layout_.num_heads * rows_ * columns, layout_.q_block,
                       layout_.kv_block, within);
  }

  const Alignment* alignment() const override { return partial_.alignment(); }
  std::int64_t query_block() const override { return layout_.q_block; }
  bool visible(const ScoreShape& shape, const ScoreIndex& at) const override {
    const Blocks row = blocks_of(at.batch, at.head, at.q);
    const auto block = static_cast<std::int32_t>(at.k / layout_.kv_block);
    const auto found = std::lower_bound(row.begin(), row.end(), block);
    if (found == row.end() || *found != block) return false;
    return !is_partial(&*found) || partial_.visible(shape, at);
  }

  std::int64_t next_key(const ScoreShape& shape, const RowGroup& rows,
                        std::int64_t key) const override {
    std::int64_t next = shape.kv_len;
    for_each_row(shape, rows, [&](const Blocks& row) {
      const auto found = first_block(row, key);
      if (found != row.end()) next = std::min(next, std::max(key, *found * layout_.kv_block));
    });
    return next;
  }

  Visibility visibility(const ScoreShape& shape, const RowGroup& rows,
                        RowRange keys) const override {
    const std::int64_t first = keys.begin / layout_.kv_block;
    const std::int64_t last = (keys.end - 1) / layout_.kv_block;
    bool any = false;
    bool all = true;
    for_each_row(shape, rows, [&](const Blocks& row) {
      auto found = first_block(row, keys.begin);
      std::int64_t full = 0;
      for (; found != row.end() && *found <= last; ++found) {
        any = true;
        full += is_partial(&*found) ? 0 : 1;
      }
      all = all && full == last - first + 1;
    });
    if (all) return Visibility::kAll;
    return any ? Visibility::kMixed : Visibility::kNone;
  }

  void hide(const ScoreShape& shape, const RowGroup& rows, RowRange keys,
            KeyBits* seen) const override {
    const std::int64_t first = detail::tile_of(keys);
    const std::int64_t offset = shape.query_offset[rows.batch];
    detail::RowBits partial;  // the keys that partial blocks show, once there is one
    bool has_partial = false;
    for (std::int32_t r = 0; r < rows.num_rows; ++r) {
      const Blocks row = blocks_of(rows.batch, rows.heads[r], rows.q_idx[r] - offset);
      KeyBits shown;
      for (auto block = first_block(row, first);
           block != row.end() && *block * layout_.kv_block < keys.end; ++block) {
        const std::int64_t begin = *block * layout_.kv_block - first;
        const auto inside = KeyBits::between(begin, begin + layout_.kv_block);
        if (is_partial(&*block) && !has_partial) {
          has_partial = true;
          partial_.see(shape, rows, keys, partial.data());
        }
        shown |= is_partial(&*block) ? inside & partial[static_cast<std::size_t>(r)] : inside;
      }
      seen[r] &= shown;
    }
  }

 private:
  using Blocks = std::span<const std::int32_t>;

  static void check_count(const char* name, std::int64_t made, std::int64_t found) {
    if (made == 1 || made == found) return;
    throw InvalidArgument(fmt::format("{}: the layout was made for {} {} but {} is {}", kBlocksName,
                                      name, made, name, found));
  }
  // The first block of a row that has this key or later ones.
  Blocks::iterator first_block(const Blocks& row, std::int64_t key) const {
    return std::lower_bound(row.begin(), row.end(),
                            static_cast<std::int32_t>(key / layout_.kv_block));
  }

  // The index in row_begin of the row of blocks of this query.
  std::size_t row_of(std::int64_t batch, std::int64_t head, std::int64_t query) const {
    const std::int64_t b = layout_.batch == 1 ? 0 : batch;
    const std::int64_t h = layout_.num_heads == 1 ? 0 : head;
    return static_cast<std::size_t>((b * layout_.num_heads + h) * rows_ + query / layout_.q_block);
  }
  Blocks blocks_at(std::size_t row) const {
    const std::int32_t* columns = layout_.columns.data();
    return {columns + layout_.row_begin[row], columns + layout_.row_begin[row + 1]};
  }
  Blocks blocks_of(std::int64_t batch, std::int64_t head, std::int64_t query) const {
    return blocks_at(row_of(batch, head, query));
  }
  bool is_partial(const std::int32_t* block) const {
    return !layout_.partial.empty() &&
           layout_.partial[static_cast<std::size_t>(block - layout_.columns.data())] != 0;
  }

  // Calls use(blocks) for the blocks of rows, once for consecutive rows with the same blocks.
  template <class Use>
  void for_each_row(const ScoreShape& shape, const RowGroup& rows, Use use) const {
    const std::int64_t offset = shape.query_offset[rows.batch];
    std::size_t last = layout_.row_begin.size();
    for (std::int32_t r = 0; r < rows.num_rows; ++r) {
      const std::size_t row = row_of(rows.batch, rows.heads[r], rows.q_idx[r] - offset);
      if (row != last) use(blocks_at(row));
      last = row;
    }
  }

  BlockLayout layout_;
  AllOf partial_;
  std::int64_t rows_;  // of blocks, in each head
};

}  // namespace

Mask Mask::blocks(BlockLayout layout, const Mask& partial) {
  layout.check(kBlocksName);
  if (AllOf(partial).adds()) {
    throw InvalidArgument(
        fmt::format("{}: partial is {}, which adds to scores; write it behind, as blocks & added",
                    kBlocksName, partial.description()));
  }
  return Mask(std::make_shared<BlocksMask>(std::move(layout), partial));
}

}}  // namespace heed::v0
