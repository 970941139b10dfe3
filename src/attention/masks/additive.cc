// Masks given as numbers to add to scores: Mask::additive.
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "attention/masks/broadcast_tensor.h"
#include "attention/masks/mask_part.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

namespace {

using detail::BroadcastTensor;
using detail::IrregularPart;
using detail::RowGroup;
using detail::ScoreIndex;
using kernels::Visibility;

class AdditiveMask final : public IrregularPart {
 public:
  explicit AdditiveMask(BroadcastTensor<float> tensor) : tensor_(std::move(tensor)) {}
  void check(const ScoreShape& shape) const override { tensor_.check("Mask::additive", shape); }
  std::string description() const override {
    return fmt::format("additive{}", to_string(tensor_.shape()));
  }
  bool visible(const ScoreShape&, const ScoreIndex& at) const override {
    return tensor_[at] != -std::numeric_limits<float>::infinity();
  }
  float added(const ScoreIndex& at) const override { return tensor_[at]; }
  bool adds() const override { return true; }
  Visibility visibility(const ScoreShape& shape, const RowGroup& rows,
                        RowRange keys) const override {
    const auto is_hidden = [&](const float* row) {
      for (std::int64_t k = 0; k < keys.end - keys.begin; ++k) {
        if (row[k * tensor_.key_stride()] != -std::numeric_limits<float>::infinity()) return false;
      }
      return true;
    };
    return tensor_.each_row(shape, rows, keys.begin, is_hidden) ? Visibility::kNone
                                                                : Visibility::kMixed;
  }
  // hide() does nothing: add() gives hidden keys −infinity.
  void hide(const ScoreShape&, const RowGroup&, RowRange, detail::KeyBits*) const override {}
  void add(const ScoreShape& shape, const detail::BasicScoreTile<float>& tile,
           const kernels::BasicScoreLoops<float>& loops) const override {
    add_rows(shape, tile, loops);
  }
  void add(const ScoreShape& shape, const detail::BasicScoreTile<double>& tile,
           const kernels::BasicScoreLoops<double>& loops) const override {
    add_rows(shape, tile, loops);
  }

 private:
  template <class Real>
  void add_rows(const ScoreShape& shape, const detail::BasicScoreTile<Real>& tile,
                const kernels::BasicScoreLoops<Real>& loops) const {
    tensor_.with_rows(shape, tile, [&](const kernels::ScoreRows<float>& rows) {
      loops.add_mask_rows(tile, rows);
    });
  }

  BroadcastTensor<float> tensor_;
};

}  // namespace

Mask Mask::additive(FloatView added) {
  return Mask(std::make_shared<AdditiveMask>(BroadcastTensor<float>(added)));
}
Mask Mask::additive(Tensor<float>&& added) {
  return Mask(std::make_shared<AdditiveMask>(BroadcastTensor<float>(std::move(added))));
}

}}  // namespace heed::v0
