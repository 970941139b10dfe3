// score = softcap · tanh(score / softcap): scores stay within ±softcap.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "attention/terms/terms.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

template <class Real>
class Softcap final : public FormulaTerm<Softcap<Real>, Real> {
 public:
  explicit Softcap(Real softcap) : softcap_(softcap) {}

  std::string description() const override { return fmt::format("softcap({})", softcap_); }

  template <class Score>
  Score of(Score score, const detail::ScoreIndex&) const {
    return Score(softcap_) * tanh(score / Score(softcap_));
  }

  void apply_to(const kernels::BasicScoreTile<Real>& tile,
                const kernels::BasicScoreLoops<Real>& loops) const override {
    loops.cap(tile, softcap_);
    // The softcap is the first term: it sets the derivatives instead of multiplying them.
    if (tile.derivatives != nullptr) loops.gradients->start_derivatives(tile, softcap_);
  }
  bool has_derivative() const override { return true; }

 private:
  Real softcap_;
};

}  // namespace

template <class Real>
auto TermFactory<Real>::softcap(const Input& input) -> Pointer {
  const Real softcap = input.options.softcap;
  if (!std::isfinite(softcap) || softcap < 0) {
    throw InvalidArgument(fmt::format("{}: softcap is {}, expected 0 for none or a positive number",
                                      input.function, softcap));
  }
  if (softcap == 0) return nullptr;
  return std::make_shared<Softcap<Real>>(softcap);
}

template auto TermFactory<float>::softcap(const Input&) -> Pointer;
template auto TermFactory<double>::softcap(const Input&) -> Pointer;

}}  // namespace heed::v0
