// A user's function of a score and its position.
#include <cstdint>
#include <memory>
#include <utility>

#include "attention/terms/terms.h"

namespace heed { inline namespace v0 {

detail::ScoreFunction::~ScoreFunction() = default;

void detail::ScoreFunction::learn(const ScoreTile& /*tile*/, const float* /*grad_scores*/,
                                  std::int64_t /*query_offset*/) const {}
void detail::ScoreFunction::learn(const BasicScoreTile<double>& /*tile*/,
                                  const double* /*grad_scores*/,
                                  std::int64_t /*query_offset*/) const {}

namespace {

template <class Real>
class ModifiedScore final : public FormulaTerm<ModifiedScore<Real>, Real> {
 public:
  ModifiedScore(ScoreMod function, const ScoreShape& shape)
      : function_(std::move(function)), shape_(shape) {}

  std::string description() const override { return "score_mod"; }

  template <class Score>
  Score of(Score score, const detail::ScoreIndex& at) const {
    return function_(score, detail::position(shape_, at));
  }

  void apply_to(const kernels::BasicScoreTile<Real>& tile,
                const kernels::BasicScoreLoops<Real>&) const override {
    function_.apply_to(tile);
  }
  bool has_derivative() const override { return true; }

  bool reads_gradient() const override { return function_.learns(); }
  void read_gradient(const kernels::BasicScoreTile<Real>& tile,
                     const Real* grad_scores) const override {
    function_.learn(tile, grad_scores, shape_.query_offset[tile.batch]);
  }

 private:
  ScoreMod function_;
  ScoreShape shape_;
};

}  // namespace

template <class Real>
auto TermFactory<Real>::score_mod(const Input& input) -> Pointer {
  if (!input.options.score_mod) return nullptr;
  return std::make_shared<ModifiedScore<Real>>(input.options.score_mod, input.scores);
}

template auto TermFactory<float>::score_mod(const Input&) -> Pointer;
template auto TermFactory<double>::score_mod(const Input&) -> Pointer;

}}  // namespace heed::v0
