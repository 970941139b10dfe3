#include <algorithm>
#include <cstdint>

#include "attention/reference/arithmetic.h"
#include "attention/reference/passes.h"
#include "attention/reference/row.h"
#include "core/float_environment.h"

namespace heed { inline namespace v0 { namespace reference {

namespace {

// The tensors of the intermediate steps that are wanted, and the place of a row in them.
template <class Real>
class KeptSteps {
 public:
  KeptSteps(Keep keep, const ScoreShape& shape, Result<Real>& result)
      : keep_(keep), shape_(shape), result_(result) {
    const Shape scores{shape.batch, shape.num_heads, shape.q_len, shape.kv_len};
    visit([&](Tensor<Real>& tensor, auto) { tensor = Tensor<Real>(scores); });
  }

  // True if a step before the mask is wanted, which has hidden cells too.
  bool wants_hidden_cells() const {
    return has(keep_, Keep::kScores | Keep::kCapped | Keep::kModified);
  }

  void store(const Row<Real>& row, std::int64_t row_index) {
    visit([&](Tensor<Real>& tensor, auto step) {
      const auto& elements = row.*step;
      std::copy(elements.begin(), elements.end(), tensor.data() + row_index * shape_.kv_len);
    });
  }

 private:
  template <class Visit>
  void visit(Visit visit) {
    if (has(keep_, Keep::kScores)) visit(result_.scores, &Row<Real>::scores);
    if (has(keep_, Keep::kCapped)) visit(result_.capped, &Row<Real>::capped);
    if (has(keep_, Keep::kModified)) visit(result_.modified, &Row<Real>::modified);
    if (has(keep_, Keep::kMasked)) visit(result_.masked, &Row<Real>::masked);
    if (has(keep_, Keep::kWeights)) visit(result_.weights, &Row<Real>::weights);
    if (has(keep_, Keep::kDropped)) visit(result_.dropped, &Row<Real>::dropped);
  }

  Keep keep_;
  ScoreShape shape_;
  Result<Real>& result_;
};

template <class Real>
void weighted_sum_of_values(const Row<Real>& row, const Problem<Real>& problem, Real* out) {
  for (std::int64_t k = 0; k < problem.shape.kv_len; ++k) {
    if (!is_seen(row.masked[static_cast<std::size_t>(k)])) continue;
    const Real weight = row.rounded(row.dropped[static_cast<std::size_t>(k)]);
    const auto add = [&](const Real* value) {
      for (std::int64_t d = 0; d < problem.value_dim(); ++d) out[d] += weight * value[d];
    };
    add(row.value(k));
    for (const auto& term : problem.terms) {
      if (term->adds_to_values()) add(term->added_value(row.at(k)));
    }
  }
}

}  // namespace

template <class Real>
Result<Real> forward(const Problem<Real>& problem, RowRange batches, Keep keep) {
  ScoreShape shape = problem.scores();
  shape.batch = batches.end - batches.begin;
  Result<Real> result;
  result.out = Tensor<Real>({shape.batch, shape.num_heads, shape.q_len, problem.value_dim()});
  result.lse = Tensor<Real>({shape.batch, shape.num_heads, shape.q_len});
  KeptSteps<Real> kept(keep, shape, result);
  Row<Real> row(problem);
  std::int64_t row_index = 0;
  for (std::int64_t batch = batches.begin; batch < batches.end; ++batch) {
    for (std::int64_t head = 0; head < shape.num_heads; ++head) {
      for (std::int64_t q = 0; q < shape.q_len; ++q, ++row_index) {
        row.compute(batch, head, q, kept.wants_hidden_cells());
        weighted_sum_of_values(row, problem, result.out.data() + row_index * problem.value_dim());
        result.lse.data()[row_index] = row.lse;
        kept.store(row, row_index);
      }
    }
  }
  return result;
}

template Result<float> forward(const Problem<float>&, RowRange, Keep);
template Result<double> forward(const Problem<double>&, RowRange, Keep);

Result<float> attention(FloatView query, FloatView key, FloatView value,
                        const AttentionOptions& options, Keep keep) {
  const FloatEnvironment environment;
  const auto problem = check_attention("attention", query, key, value, options);
  return forward(problem, {0, problem.shape.batch}, keep);
}

Result<float> attention(BFloat16View query, BFloat16View key, BFloat16View value,
                        const AttentionOptions& options, Keep keep) {
  const FloatEnvironment environment;
  const Floats numbers("attention", query, key, value);
  return forward(numbers.problem("attention", options), {0, query.extent(0)}, keep);
}

Result<double> attention(DoubleView query, DoubleView key, DoubleView value,
                         const AttentionOptions64& options, Keep keep) {
  const FloatEnvironment environment;
  const auto problem = check_attention("attention", query, key, value, options);
  return forward(problem, {0, problem.shape.batch}, keep);
}

}}}  // namespace heed::v0::reference
