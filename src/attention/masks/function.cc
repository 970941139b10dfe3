// Masks given as a function: Mask::where.
#include <memory>
#include <utility>

#include "attention/masks/mask_part.h"
#include "heed/mask.h"

namespace heed::inline v0 {

detail::MaskFunction::~MaskFunction() = default;

namespace {

using detail::IrregularPart;
using detail::ScoreIndex;

class FunctionMask final : public IrregularPart<FunctionMask> {
 public:
  explicit FunctionMask(std::shared_ptr<const detail::MaskFunction> function)
      : function_(std::move(function)) {}
  void check(const ScoreShape&) const override {}
  std::string description() const override { return "where(function)"; }
  bool visible(const ScoreShape& shape, const ScoreIndex& at) const override {
    return function_->visible(position(shape, at));
  }
  template <class Real>
  void hide_in(const ScoreShape&, const detail::BasicScoreTile<Real>& tile,
               const kernels::BasicKernelTable<Real>&) const {
    function_->hide(tile);
  }

 private:
  std::shared_ptr<const detail::MaskFunction> function_;
};

}  // namespace

Mask Mask::where_function(std::shared_ptr<const detail::MaskFunction> function) {
  return Mask(std::make_shared<FunctionMask>(std::move(function)));
}

}  // namespace heed::inline v0
