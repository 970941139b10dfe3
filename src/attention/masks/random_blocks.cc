// Blocks of keys drawn at random for each block of queries.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "attention/masks/aligned.h"
#include "core/philox.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

namespace {

using detail::IrregularPart;
using detail::KeyBits;
using detail::RowGroup;
using detail::ScoreIndex;
using kernels::Visibility;

// The blocks of a row are drawn on the stack each time they are needed, at most this many.
constexpr std::int64_t kMostDrawn = 256;

// A key of the generator that separates these numbers from those of dropout with the same seed.
constexpr std::uint32_t kDrawnKey = 0x6D61736BU;

// The blocks of keys that one block of queries sees in one head, in rising order. Not to be shared
// by threads, as next() keeps its place.
class DrawnBlocks {
 public:
  DrawnBlocks(const RandomBlocks& drawn, std::int64_t head, std::int64_t row,
              std::int64_t available) {
    const auto random_words = [&](std::int64_t i) {
      return philox({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(row),
                     static_cast<std::uint32_t>(static_cast<std::uint64_t>(row) >> 32),
                     static_cast<std::uint32_t>(head)},
                    {static_cast<std::uint32_t>(drawn.seed) ^ kDrawnKey,
                     static_cast<std::uint32_t>(drawn.seed >> 32)});
    };
    // Floyd's algorithm: Bentley, "Programming Pearls: A Sample of Brilliance", 1987.
    const std::int64_t count = std::min(drawn.count, std::max<std::int64_t>(available, 0));
    std::array<std::uint32_t, 4> words{};
    for (std::int64_t i = 0; i < count; ++i) {
      if (i % 2 == 0) words = random_words(i / 2);
      const auto last = static_cast<std::int32_t>(available - count + i);
      const std::size_t at = i % 2 == 0 ? 0 : 2;
      insert(below(last + 1, words[at], words[at + 1]), last);
    }
  }

  bool contains(std::int64_t block) const {
    return std::binary_search(blocks_.begin(), end(), block);
  }
  // The number of these blocks in a range of blocks.
  std::int64_t count_in(RowRange range) const {
    return std::lower_bound(blocks_.begin(), end(), range.end) -
           std::lower_bound(blocks_.begin(), end(), range.begin);
  }
  // The first of these blocks that is ≥ `block`, or kUnbounded. As callers go mostly in rising
  // order, the search begins after the last block found.
  std::int64_t next(std::int64_t block) const {
    const auto* last = blocks_.begin() + found_;
    if (found_ > 0 && last[-1] >= block) last = std::lower_bound(blocks_.begin(), last, block);
    while (last != end() && *last < block) ++last;
    found_ = last - blocks_.begin();
    return last == end() ? kUnbounded : *last;
  }

 private:
  const std::int32_t* end() const { return blocks_.data() + size_; }

  // Inserts `chosen`, or if it is there already `last`, which exceeds all of them.
  void insert(std::int32_t chosen, std::int32_t last) {
    auto* behind = blocks_.begin() + size_;
    // Counting in whole vectors is faster than a binary search among this few blocks.
    auto* place = blocks_.begin() + std::count_if(blocks_.begin(), behind, [&](std::int32_t block) {
                    return block < chosen;
                  });
    const bool is_there = place != behind && *place == chosen;
    if (is_there) place = behind;
    std::copy_backward(place, behind, behind + 1);
    *place = is_there ? last : chosen;
    ++size_;
  }

  // A number from 0 to bound − 1, for bound < 2³¹: the high part of the product of bound and 64
  // random bits.
  static std::int32_t below(std::int64_t bound, std::uint32_t high, std::uint32_t low) {
    const auto factor = static_cast<std::uint64_t>(bound);
    return static_cast<std::int32_t>((high * factor + (low * factor >> 32)) >> 32);
  }

  std::array<std::int32_t, kMostDrawn> blocks_;  // keys are fewer than 2³¹
  std::ptrdiff_t size_ = 0;
  mutable std::ptrdiff_t found_ = 0;  // the index at which the last call of next() ended
};

class RandomBlocksMask final : public IrregularPart {
 public:
  RandomBlocksMask(const RandomBlocks& drawn, Alignment alignment)
      : drawn_(drawn), alignment_(std::move(alignment)) {}

  void check(const ScoreShape& shape) const override { alignment_.check("random_blocks", shape); }
  std::string description() const override {
    const std::string aligned = alignment_.description();
    return fmt::format("random_blocks({}, {}, {}{}{}{})", drawn_.count, drawn_.block, drawn_.seed,
                       drawn_.only_past ? ", past" : "", aligned.empty() ? "" : ", ", aligned);
  }
  const Alignment* alignment() const override { return &alignment_; }
  std::int64_t query_block() const override { return drawn_.block; }

  bool visible(const ScoreShape& shape, const ScoreIndex& at) const override {
    const std::int64_t position = at.q + alignment_.resolve(shape, at.batch);
    return draw(shape, at.head, detail::block_of(position, drawn_.block))
        .contains(at.k / drawn_.block);
  }

  detail::GroupRanges ranges(const ScoreShape& shape, const RowGroup& /*rows*/) const override {
    return {{0, shape.kv_len}, {0, shape.kv_len}};
  }
  std::int64_t next_key(const ScoreShape& shape, const RowGroup& rows,
                        std::int64_t key) const override {
    const std::int64_t first = key / drawn_.block;
    std::int64_t next = shape.kv_len;
    for_each_draw(shape, rows, [&](const DrawnBlocks& blocks, const auto&) {
      const std::int64_t block = blocks.next(first);
      if (block != kUnbounded) next = std::min(next, std::max(key, block * drawn_.block));
    });
    return next;
  }

  Visibility visibility(const ScoreShape& shape, const RowGroup& rows,
                        RowRange keys) const override {
    const RowRange range{keys.begin / drawn_.block, (keys.end - 1) / drawn_.block + 1};
    bool any = false;
    bool all = true;
    for_each_draw(shape, rows, [&](const DrawnBlocks& blocks, const auto&) {
      const std::int64_t seen = blocks.count_in(range);
      any = any || seen > 0;
      all = all && seen == range.end - range.begin;
    });
    if (all) return Visibility::kAll;
    return any ? Visibility::kMixed : Visibility::kNone;
  }

  void hide(const ScoreShape& shape, const RowGroup& rows, RowRange keys,
            KeyBits* seen) const override {
    const std::int64_t first = detail::tile_of(keys);
    for_each_draw(shape, rows, [&](const DrawnBlocks& blocks, const auto& is_of) {
      KeyBits shown;
      for (std::int64_t block = blocks.next(first / drawn_.block);
           block != kUnbounded && block * drawn_.block < keys.end; block = blocks.next(block + 1)) {
        const std::int64_t begin = block * drawn_.block - first;
        shown |= KeyBits::between(begin, begin + drawn_.block);
      }
      for (std::int32_t r = 0; r < rows.num_rows; ++r) {
        if (is_of(r)) seen[r] &= shown;
      }
    });
  }

 private:
  // A panel needs the draws of its rows for every tile, so each thread keeps some.
  const DrawnBlocks& draw(const ScoreShape& shape, std::int64_t head, std::int64_t row) const {
    const std::tuple wanted(drawn_.seed, drawn_.count, drawn_.block, drawn_.only_past, head, row,
                            shape.kv_len);
    struct Draw {
      std::remove_const_t<decltype(wanted)> of;
      std::optional<DrawnBlocks> blocks;
    };
    // Neighbouring heads, and neighbouring rows of one head, have different slots.
    thread_local std::array<Draw, 16> draws;
    Draw& draw = draws[static_cast<std::uint64_t>(row + 5 * head) % draws.size()];
    if (!draw.blocks || draw.of != wanted) {
      const std::int64_t all = (shape.kv_len + drawn_.block - 1) / drawn_.block;
      draw.blocks.emplace(drawn_, head, row, drawn_.only_past ? std::min(row + 1, all) : all);
      draw.of = wanted;
    }
    return *draw.blocks;
  }

  // Calls each(blocks, is_of) for each different draw of these rows; is_of(r) is true if row r has
  // it.
  template <class Each>
  void for_each_draw(const ScoreShape& shape, const RowGroup& rows, Each each) const {
    const std::int64_t moved =
        alignment_.resolve(shape, rows.batch) - shape.query_offset[rows.batch];
    std::int32_t head = -1;
    std::int64_t begin = 0;
    const auto is_of = [&](std::int32_t r) {
      return rows.heads[r] == head && rows.q_idx[r] >= begin &&
             rows.q_idx[r] < begin + drawn_.block;
    };
    // With one head the rows of a block are consecutive, as positions do not fall.
    const bool is_one_head = rows.has_one_head();
    for (std::int32_t first = 0; first < rows.num_rows; ++first) {
      if (is_of(first)) continue;
      head = rows.heads[first];
      const std::int64_t row = detail::block_of(rows.q_idx[first] + moved, drawn_.block);
      begin = row * drawn_.block - moved;
      bool is_new = true;
      for (std::int32_t r = first - 1; r >= 0 && is_new && !is_one_head; --r) is_new = !is_of(r);
      if (is_new) each(draw(shape, head, row), is_of);
      if (is_one_head && is_of(rows.num_rows - 1)) return;
    }
  }

  RandomBlocks drawn_;
  Alignment alignment_;
};

}  // namespace

Mask random_blocks(const RandomBlocks& drawn, Alignment alignment) {
  detail::check_number("random_blocks", "count", drawn.count, 0, kMostDrawn);
  detail::check_number("random_blocks", "block", drawn.block, 1);
  return Mask(std::make_shared<RandomBlocksMask>(drawn, std::move(alignment)));
}

}}  // namespace heed::v0
