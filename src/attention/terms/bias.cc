// score += an element of a tensor that broadcasts to the scores.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>

#include "attention/terms/terms.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

template <class Real>
class Bias final : public FormulaTerm<Bias<Real>, Real> {
 public:
  // `scores` is [batch, num_heads, q_len, kv_len]. Throws what broadcast_to() throws.
  Bias(TensorView<const Real> bias, const Shape& scores, const QueryOffset& query_offset)
      : bias_(bias.broadcast_to(scores)), shape_(bias.shape()), query_offset_(query_offset) {}

  std::string description() const override { return fmt::format("bias{}", to_string(shape_)); }

  template <class Score>
  Score of(Score score, const detail::ScoreIndex& at) const {
    return score + Score(bias_(at.batch, at.head, at.q, at.k));
  }

  void apply_to(const kernels::BasicScoreTile<Real>& tile,
                const kernels::BasicScoreLoops<Real>& loops) const override {
    std::array<const Real*, kernels::kMaxPanelWidth> rows;
    const std::int64_t offset = query_offset_[tile.batch];
    for (std::int32_t r = 0; r < tile.width; ++r) {
      rows[static_cast<std::size_t>(r)] =
          bias_.data() + tile.batch * bias_.stride(0) + tile.heads[r] * bias_.stride(1) +
          (tile.q_idx[r] - offset) * bias_.stride(2) + tile.first_key * bias_.stride(3);
    }
    loops.add_rows(tile, {rows.data(), bias_.stride(3)});
  }

  // The gradient of the bias is that of the scores, summed over the dimensions that were broadcast.
  typename ScoreTerm<Real>::Gradient gradient() const override {
    return &OptionGradients<Real>::bias;
  }
  Shape gradient_shape() const override { return shape_; }
  void add_gradient(Real grad_score, const ScoreAt<Real>& at, Real* gradient) const override {
    const std::int64_t indices[] = {at.k, at.q, at.head, at.batch};
    std::int64_t offset = 0;
    std::int64_t stride = 1;
    for (int dim = 1; dim <= shape_.rank(); ++dim) {
      if (shape_[-dim] > 1) offset += indices[dim - 1] * stride;
      stride *= shape_[-dim];
    }
    gradient[offset] += grad_score;
  }
  void add_gradient(const kernels::BasicScoreTile<Real>& tile, const Real* grad_scores,
                    const TermSums<Real>& sums,
                    const kernels::BasicScoreLoops<Real>& loops) const override {
    const CellSums<Real>& cells = sums.cells;
    std::array<Real*, kernels::kMaxPanelWidth> rows;
    const std::int64_t offset = query_offset_[tile.batch];
    for (std::int32_t r = 0; r < tile.num_rows; ++r) {
      rows[static_cast<std::size_t>(r)] =
          cells.data + (tile.heads[r] - sums.first_head) * cells.head_stride +
          (tile.q_idx[r] - offset - cells.first_query) * cells.query_stride +
          tile.first_key * cells.key_stride;
    }
    loops.gradients->add_to_rows(tile, grad_scores, {rows.data(), cells.key_stride});
  }

 private:
  TensorView<const Real> bias_;  // broadcast to the scores
  Shape shape_;                  // before broadcasting
  QueryOffset query_offset_;
};

}  // namespace

template <class Real>
auto TermFactory<Real>::bias(const Input& input) -> Pointer {
  const auto& bias = input.options.bias;
  const ScoreShape& shape = input.scores;
  if (!bias) return nullptr;
  const Shape scores{shape.batch, shape.num_heads, shape.q_len, shape.kv_len};
  try {
    return std::make_shared<Bias<Real>>(*bias, scores, shape.query_offset);
  } catch (const InvalidArgument&) {
    throw InvalidArgument(fmt::format(
        "{}: bias has shape {}, which does not broadcast to [batch, num_heads, q_len, kv_len] = {}",
        input.function, to_string(bias->shape()), to_string(scores)));
  }
}

template auto TermFactory<float>::bias(const Input&) -> Pointer;
template auto TermFactory<double>::bias(const Input&) -> Pointer;

}}  // namespace heed::v0
