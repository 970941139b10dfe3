#include "support/gradients.h"

#include <algorithm>
#include <cmath>

#include "attention/fused/backward.h"
#include "heed/parallel.h"
#include "heed/reference.h"
#include "support/exact.h"
#include "support/tensors.h"

namespace heed::testing_support {

Tensor<float> grad_out_for(const InputViews& in) {
  return normal<float>(
      {in.query.extent(0), in.query.extent(1), in.query.extent(2), in.value.extent(3)}, 11);
}

AttentionGradients<float> gradients_of(const kernels::KernelTable& table, FloatView grad_out,
                                       const InputViews& in, const AttentionOptions& options,
                                       int threads) {
  const auto forward = run(table, in, options);
  const AttentionShapes shapes = check_shapes("gradients_of", in.query, in.key, in.value);
  const Terms<float> terms = check_terms("gradients_of", shapes, options);
  fused::Schedule schedule = fused::make_backward_schedule(table, terms, shapes, threads);
  schedule.workers = threads;
  set_num_threads(threads);
  auto gradients =
      fused::backward(schedule, {grad_out, in.query, in.key, in.value, forward.out, forward.lse},
                      terms, options.bias ? &options.bias->shape() : nullptr);
  set_num_threads(0);
  return gradients;
}

ExpectedGradients expected_gradients(FloatView grad_out, const InputViews& in,
                                     const AttentionOptions& options) {
  const ExactOptions exact_options(options);
  const auto exact_query = exactly(in.query);
  const auto exact_key = exactly(in.key);
  const auto exact_value = exactly(in.value);
  const auto lse = reference::attention(exact_query, exact_key, exact_value, *exact_options).lse;
  return {reference::attention_backward(grad_out, in.query, in.key, in.value, options),
          reference::attention_backward(exactly(grad_out), exact_query, exact_key, exact_value,
                                        *exact_options),
          largest_magnitude(lse),
          static_cast<double>(lse.num_elements()) * static_cast<double>(in.key.extent(2))};
}

std::string inaccuracy(const AttentionGradients<float>& found, const ExpectedGradients& expected,
                       double score_roundings) {
  const auto& [plain, exact, largest_lse, num_scores] = expected;
  const double roundings = 2 + (1 + score_roundings) * largest_lse;
  const auto judge = [](const char* name, const Tensor<float>& is, const Tensor<float>& by_loops,
                        const Tensor<double>& should_be, double allowed) {
    const Judgement judgement{.always_allowed =
                                  allowed * 0x1p-24 * std::max(1.0, largest_magnitude(should_be))};
    return judgement(name, is, by_loops, should_be);
  };
  // Each of these is a sum of so many terms, whose roundings add up like random steps.
  const auto of_sum = [&, n = num_scores](const Tensor<double>& sums, std::int64_t dim) {
    const auto elements = static_cast<double>(std::max<std::int64_t>(sums.num_elements(), 1));
    return roundings + std::sqrt(n * static_cast<double>(dim) / elements);
  };
  return judge("query", found.query, plain.query, exact.query, roundings) +
         judge("key", found.key, plain.key, exact.key, of_sum(exact.key, exact.key.extent(3))) +
         judge("value", found.value, plain.value, exact.value,
               of_sum(exact.value, exact.value.extent(3))) +
         judge("bias", found.bias, plain.bias, exact.bias, of_sum(exact.bias, 1)) +
         judge("sinks", found.sinks, plain.sinks, exact.sinks, of_sum(exact.sinks, 1));
}

bool same_bits(const AttentionGradients<float>& a, const AttentionGradients<float>& b) {
  return same_bits(a.query, b.query) && same_bits(a.key, b.key) && same_bits(a.value, b.value) &&
         same_bits(a.bias, b.bias) && same_bits(a.sinks, b.sinks);
}

}  // namespace heed::testing_support
