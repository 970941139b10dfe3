// score −= slope of the head · |key's position − query's position|.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "attention/terms/terms.h"
#include "core/check_tensor.h"

namespace heed { inline namespace v0 {

namespace {

template <class Real>
class Alibi final : public FormulaTerm<Alibi<Real>, Real> {
 public:
  Alibi(TensorView<const Real> slopes, const ScoreShape& shape)
      : slopes_(slopes), query_offset_(shape.query_offset) {}

  std::string description() const override { return "ALiBi"; }

  template <class Score>
  Score of(Score score, const detail::ScoreIndex& at) const {
    return score + Score(-slopes_(at.head) * distance(at));
  }

  void apply_to(const kernels::BasicScoreTile<Real>& tile,
                const kernels::BasicScoreLoops<Real>& loops) const override {
    alignas(64) std::array<Real, kernels::kMaxPanelWidth> slopes;
    for (std::int32_t r = 0; r < tile.width; ++r) {
      slopes[static_cast<std::size_t>(r)] = slopes_(tile.heads[r]);
    }
    loops.add_alibi(tile, slopes.data());
  }

  // The gradient of a slope is −Σ grad_score · distance over its head.
  typename ScoreTerm<Real>::Gradient gradient() const override {
    return &OptionGradients<Real>::alibi_slopes;
  }
  Shape gradient_shape() const override { return slopes_.shape(); }
  void add_gradient(Real grad_score, const ScoreAt<Real>& at, Real* gradient) const override {
    gradient[at.head] -= grad_score * distance(at);
  }
  std::int64_t sums_per_head() const override { return 1; }
  void add_gradient(const kernels::BasicScoreTile<Real>& tile, const Real* grad_scores,
                    const TermSums<Real>& sums,
                    const kernels::BasicScoreLoops<Real>& loops) const override {
    alignas(64) std::array<Real, kernels::kMaxPanelWidth> distances{};
    loops.gradients->sum_distances(tile, grad_scores, distances.data());
    for (std::int32_t r = 0; r < tile.num_rows; ++r) {
      *sums.of_head(tile.heads[r], 1) -= double{distances[static_cast<std::size_t>(r)]};
    }
  }

 private:
  Real distance(const detail::ScoreIndex& at) const {
    return static_cast<Real>(std::abs(at.k - at.q - query_offset_[at.batch]));
  }

  TensorView<const Real> slopes_;  // [num_heads]
  QueryOffset query_offset_;
};

}  // namespace

template <class Real>
auto TermFactory<Real>::alibi(const Input& input) -> Pointer {
  const auto& slopes = input.options.alibi_slopes;
  if (!slopes) return nullptr;
  check_tensor(input.function, "alibi_slopes", *slopes, Shape{input.scores.num_heads});
  return std::make_shared<Alibi<Real>>(*slopes, input.scores);
}

template auto TermFactory<float>::alibi(const Input&) -> Pointer;
template auto TermFactory<double>::alibi(const Input&) -> Pointer;

}}  // namespace heed::v0
