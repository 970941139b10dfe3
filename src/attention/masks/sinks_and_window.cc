#include "attention/masks/sinks_and_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "attention/masks/aligned.h"

namespace heed { inline namespace v0 {

namespace {

using detail::IrregularPart;
using detail::KeyBits;
using detail::RowGroup;
using detail::ScoreIndex;
using kernels::Visibility;

// The visibility of keys after the query.
enum class Future { kVisible, kHidden };

// A query at position p sees the keys k < sinks and k > p − window.
class SinksAndWindow final : public IrregularPart {
 public:
  SinksAndWindow(std::int64_t sinks, std::int64_t window, Future future, Alignment alignment)
      : sinks_(sinks), window_(window), future_(future), alignment_(std::move(alignment)) {}

  void check(const ScoreShape& shape) const override {
    if (future_ == Future::kHidden) alignment_.check("streaming", shape);
  }
  std::string description() const override {
    if (future_ == Future::kVisible)
      return fmt::format("sinks_and_window({}, {})", sinks_, window_);
    const std::string aligned = alignment_.description();
    return fmt::format("streaming({}, {}{}{})", sinks_, detail::side_text(window_),
                       aligned.empty() ? "" : ", ", aligned);
  }
  const Alignment* alignment() const override {
    return future_ == Future::kHidden ? &alignment_ : nullptr;
  }
  RowRange range(const ScoreShape& shape, const AttentionRow& row) const override {
    if (future_ == Future::kVisible) return {0, shape.kv_len};
    return {0, row.query + alignment_.resolve(shape, row.batch) + 1};
  }
  bool visible(const ScoreShape& shape, const ScoreIndex& at) const override {
    return at.k < sinks_ || at.k >= begin(at.q + alignment_.resolve(shape, at.batch));
  }
  std::int64_t next_key(const ScoreShape& shape, const RowGroup& rows,
                        std::int64_t key) const override {
    if (key < sinks_) return key;
    return std::max(key, begin(rows.positions().begin + moved(shape, rows.batch)));
  }
  Visibility visibility(const ScoreShape& shape, const RowGroup& rows,
                        RowRange keys) const override {
    const RowRange positions = rows.positions();
    const std::int64_t offset = moved(shape, rows.batch);
    if (keys.end <= sinks_ || keys.begin >= begin(positions.end - 1 + offset))
      return Visibility::kAll;
    const bool is_none = keys.begin >= sinks_ && keys.end <= begin(positions.begin + offset);
    return is_none ? Visibility::kNone : Visibility::kMixed;
  }
  void hide(const ScoreShape& shape, const RowGroup& rows, RowRange keys,
            KeyBits* seen) const override {
    const std::int64_t first = detail::tile_of(keys);
    const std::int64_t offset = moved(shape, rows.batch) - first;
    for (std::int32_t r = 0; r < rows.num_rows; ++r) {
      seen[r] &= ~KeyBits::between(sinks_ - first, begin(rows.q_idx[r] + offset));
    }
  }

 private:
  // The shift from a query's position in the call, query_offset included, to its position among the
  // keys.
  std::int64_t moved(const ScoreShape& shape, std::int64_t batch) const {
    return alignment_.resolve(shape, batch) - shape.query_offset[batch];
  }
  // The first key of a query's window.
  std::int64_t begin(std::int64_t position) const {
    return position - std::min(window_, detail::kFar) + 1;
  }

  std::int64_t sinks_;
  std::int64_t window_;
  Future future_;
  Alignment alignment_;
};

}  // namespace

Mask sinks_and_window(std::int64_t sinks, std::int64_t window) {
  // Without sinks the mask is one interval of keys, which kernels support.
  if (sinks == 0) return sliding_window(window - 1, kUnbounded, Alignment::top_left());
  return Mask(
      std::make_shared<SinksAndWindow>(sinks, window, Future::kVisible, Alignment::top_left()));
}

Mask streaming(std::int64_t sinks, std::int64_t window, Alignment alignment) {
  detail::check_number("streaming", "sinks", sinks, 0, kUnbounded);
  detail::check_number("streaming", "window", window, 1, kUnbounded);
  if (sinks == 0) {
    return sliding_window(window == kUnbounded ? window : window - 1, 0, std::move(alignment));
  }
  return Mask(
      std::make_shared<SinksAndWindow>(sinks, window, Future::kHidden, std::move(alignment)));
}

}}  // namespace heed::v0
