// Masks given as a function: Mask::where.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "attention/masks/mask_part.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

detail::MaskFunction::~MaskFunction() = default;

namespace {

using detail::IrregularPart;
using detail::KeyBits;
using detail::RowGroup;
using detail::ScoreIndex;

class FunctionMask final : public IrregularPart {
 public:
  explicit FunctionMask(std::shared_ptr<const detail::MaskFunction> function)
      : function_(std::move(function)) {}
  void check(const ScoreShape&) const override {}
  std::string description() const override { return "where(function)"; }
  bool calls_function() const override { return true; }
  bool visible(const ScoreShape& shape, const ScoreIndex& at) const override {
    return function_->visible(position(shape, at));
  }
  // Runs the user's loop over a tile of scores, in which the scores of visible keys stay 0.
  void hide(const ScoreShape&, const RowGroup& rows, RowRange keys, KeyBits* seen) const override {
    constexpr std::size_t kWidth = kernels::kMaxPanelWidth;
    alignas(64) std::array<float, kernels::kTileKeys * kWidth> scores;
    std::array<std::int32_t, kWidth> heads;
    std::array<std::int32_t, kWidth> q_idx;
    const auto width = (rows.num_rows + 15) / 16 * 16;
    for (std::int32_t r = 0; r < width; ++r) {
      const std::int32_t row = std::min(r, rows.num_rows - 1);
      heads[static_cast<std::size_t>(r)] = rows.heads[row];
      q_idx[static_cast<std::size_t>(r)] = rows.q_idx[row];
    }
    const std::int64_t first = detail::tile_of(keys);
    const auto begin = static_cast<std::int32_t>(keys.begin - first);
    const auto end = static_cast<std::int32_t>(keys.end - first);
    std::fill(scores.begin() + std::int64_t{begin} * width,
              scores.begin() + std::int64_t{end} * width, 0.0F);
    function_->hide({.scores = scores.data(),
                     .width = width,
                     .num_rows = rows.num_rows,
                     .first_key = static_cast<std::int32_t>(first),
                     .begin = begin,
                     .end = end,
                     .batch = rows.batch,
                     .heads = heads.data(),
                     .q_idx = q_idx.data(),
                     .target = rows.target});
    for (std::int32_t r = 0; r < rows.num_rows; ++r) {
      KeyBits shown;
      for (std::int32_t j = begin; j < end; ++j) {
        if (scores[static_cast<std::size_t>(std::int64_t{j} * width + r)] == 0) shown.set(j);
      }
      seen[r] &= shown;
    }
  }

 private:
  std::shared_ptr<const detail::MaskFunction> function_;
};

}  // namespace

Mask Mask::where_function(std::shared_ptr<const detail::MaskFunction> function) {
  return Mask(std::make_shared<FunctionMask>(std::move(function)));
}

}}  // namespace heed::v0
