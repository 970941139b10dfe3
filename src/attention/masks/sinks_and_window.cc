#include "attention/masks/sinks_and_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "attention/masks/mask_part.h"

namespace heed::inline v0 {

namespace {

using detail::IrregularPart;
using detail::RowGroup;
using detail::ScoreIndex;
using kernels::Visibility;

class SinksAndWindow final : public IrregularPart<SinksAndWindow> {
 public:
  SinksAndWindow(std::int64_t sinks, std::int64_t window) : sinks_(sinks), window_(window) {}

  void check(const ScoreShape&) const override {}
  std::string description() const override {
    return fmt::format("sinks_and_window({}, {})", sinks_, window_);
  }
  bool visible(const ScoreShape& shape, const ScoreIndex& at) const override {
    return at.k < sinks_ || at.k >= begin(at.q + shape.query_offset[at.batch]);
  }
  std::int64_t next_key(const ScoreShape&, const RowGroup& rows, std::int64_t key) const override {
    return key < sinks_
               ? key
               : std::max(key, begin(*std::min_element(rows.q_idx, rows.q_idx + rows.num_rows)));
  }
  Visibility visibility(const ScoreShape&, const RowGroup& rows, RowRange keys) const override {
    const auto [first, last] = std::minmax_element(rows.q_idx, rows.q_idx + rows.num_rows);
    if (keys.end <= sinks_ || keys.begin >= begin(*last)) return Visibility::kAll;
    if (keys.begin >= sinks_ && keys.end <= begin(*first)) return Visibility::kNone;
    return Visibility::kMixed;
  }
  template <class Real>
  void hide_in(const ScoreShape&, const detail::BasicScoreTile<Real>& tile,
               const kernels::BasicKernelTable<Real>&) const {
    for (std::int32_t r = 0; r < tile.width; ++r) {
      const std::int64_t first = std::max<std::int64_t>(sinks_ - tile.first_key, tile.begin);
      const std::int64_t end =
          std::min<std::int64_t>(begin(tile.q_idx[r]) - tile.first_key, tile.end);
      for (std::int64_t j = first; j < end; ++j) {
        tile.scores[j * tile.width + r] = -std::numeric_limits<Real>::infinity();
      }
    }
  }

 private:
  // Where the window of a query begins.
  std::int64_t begin(std::int64_t position) const { return position - window_ + 1; }

  std::int64_t sinks_;
  std::int64_t window_;
};

}  // namespace

Mask sinks_and_window(std::int64_t sinks, std::int64_t window) {
  // Without sinks it is one interval of keys, which kernels know.
  if (sinks == 0) return sliding_window(window - 1, kUnbounded, Alignment::top_left());
  return Mask(std::make_shared<SinksAndWindow>(sinks, window));
}

}  // namespace heed::inline v0
