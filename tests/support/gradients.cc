#include "support/gradients.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attention/request/gradient_tensors.h"
#include "heed/attention/reference.h"
#include "heed/core/parallel.h"
#include "support/exact.h"
#include "support/tensors.h"

namespace heed::testing_support {

namespace {

// Returns the largest |query_offset|.
std::int64_t furthest(const QueryOffset& offset) {
  std::int64_t largest = 0;
  for (const std::int64_t one : offset.values()) largest = std::max(largest, std::abs(one));
  return largest;
}

}  // namespace

Tensor<float> grad_out_for(const InputViews& in) {
  return normal<float>(
      {in.query.extent(0), in.query.extent(1), in.query.extent(2), in.value.extent(3)}, 11);
}

AttentionGradients<float> gradients_of(const kernels::KernelTable& table, FloatView grad_out,
                                       const InputViews& in, const AttentionOptions& options,
                                       int threads) {
  return gradients_from(run(table, in, options), table, grad_out, in, options, threads);
}

AttentionGradients<float> gradients_from(const AttentionOutput<float>& forward,
                                         const kernels::KernelTable& table, FloatView grad_out,
                                         const InputViews& in, const AttentionOptions& options,
                                         int threads) {
  const AttentionShapes shapes = check_shapes("gradients_of", in.query, in.key, in.value);
  const auto request = check_request("gradients_of", shapes, options);
  auto schedule = engine::make_schedule(table, request, Pass::kBackward, threads);
  schedule.workers = threads;
  GradientTensors<float> gradients(request, in.query.shape(), in.key.shape(), in.value.shape());
  const BackwardCall<float> call{call_of(request, in.query, in.key, in.value),
                                 rows_of(grad_out),
                                 rows_of(FloatView(forward.out)),
                                 forward.lse,
                                 gradients.targets(),
                                 forward.lse_low,
                                 {},
                                 data_or_null(FloatView(forward.kept))};
  set_num_threads(threads);
  FusedPass<float>(table, schedule, Pass::kBackward).backward({&call, 1});
  set_num_threads(0);
  return std::move(gradients).take();
}

ExpectedGradients expected_gradients(FloatView grad_out, const InputViews& in,
                                     const AttentionOptions& options) {
  const ExactOptions exact_options(options);
  const auto exact_query = exactly(in.query);
  const auto exact_key = exactly(in.key);
  const auto exact_value = exactly(in.value);
  const auto lse = reference::attention(exact_query, exact_key, exact_value, *exact_options).lse;
  const double head_dim = static_cast<double>(std::max<std::int64_t>(in.query.extent(3), 1));
  const double scale =
      std::abs(options.scale.value_or(static_cast<float>(1 / std::sqrt(head_dim))));
  const double term = std::sqrt(std::max(1.0, static_cast<double>(in.value.extent(3))));
  return {reference::attention_backward(grad_out, in.query, in.key, in.value, options),
          reference::attention_backward(exactly(grad_out), exact_query, exact_key, exact_value,
                                        *exact_options),
          largest_magnitude(lse),
          static_cast<double>(lse.num_elements()) * static_cast<double>(in.key.extent(2)),
          term * scale * largest_magnitude(exact_key),
          term * scale * largest_magnitude(exact_query),
          term,
          static_cast<double>(std::max(in.query.extent(2), in.key.extent(2)) +
                              furthest(options.query_offset))};
}

std::string inaccuracy(const AttentionGradients<float>& found, const ExpectedGradients& expected,
                       double score_roundings) {
  const auto& [plain, exact, largest_lse, num_scores, term_of_query, term_of_key, term, longest] =
      expected;
  const double roundings = 2 + (1 + score_roundings) * largest_lse;
  // Terms that cancel have the errors of their weights, which are independent.
  const double of_each_term = 1 + score_roundings * largest_lse;
  const auto judge = [&](const char* name, const Tensor<float>& is, const Tensor<float>& by_loops,
                         const Tensor<double>& should_be, double cancelled) {
    const Judgement judgement{
        .always_allowed = 0x1p-24 * (roundings * std::max(1.0, largest_magnitude(should_be)) +
                                     of_each_term * cancelled)};
    return judgement(name, is, by_loops, should_be);
  };
  // The roundings of many terms add up like random steps.
  const auto steps = [n = num_scores](const Tensor<double>& sums, std::int64_t dim) {
    const auto elements = static_cast<double>(std::max<std::int64_t>(sums.num_elements(), 1));
    return std::sqrt(n * static_cast<double>(dim) / elements);
  };
  // So do those of the sum, each in proportion to its current size.
  const auto sum_of_steps = [&steps, dim = exact.value.extent(3)](const Tensor<double>& sums) {
    return steps(sums, dim) * std::max(1.0, largest_magnitude(sums));
  };
  const double values = steps(exact.value, exact.value.extent(3));
  std::string text =
      judge("query", found.query, plain.query, exact.query, 2 * term_of_query) +
      judge("key", found.key, plain.key, exact.key, 2 * term_of_key * std::max(values, 1.0)) +
      judge("value", found.value, plain.value, exact.value, sum_of_steps(exact.value));
  for (std::size_t i = 0; i < kLearnable<float>.size(); ++i) {
    const std::string name = kLearnable<float>[i].name;
    const auto of = kLearnable<float>[i].gradient;
    const Tensor<double>& should_be = exact.*kLearnable<double>[i].gradient;
    double cancelled = 2 * term * steps(should_be, 1);
    if (name == "alibi_slopes") cancelled *= longest;
    if (name == "relative_key") {
      cancelled = 2 * term_of_key * steps(should_be, exact.query.extent(3));
    }
    if (name == "relative_value") cancelled = sum_of_steps(should_be);
    text += judge(name.c_str(), found.*of, plain.*of, should_be, cancelled);
  }
  return text;
}

bool same_bits(const AttentionGradients<float>& a, const AttentionGradients<float>& b) {
  return same_bits(a.query, b.query) && same_bits(a.key, b.key) && same_bits(a.value, b.value) &&
         std::all_of(kLearnable<float>.begin(), kLearnable<float>.end(),
                     [&](const Learnable<float>& term) {
                       return same_bits(a.*term.gradient, b.*term.gradient);
                     });
}

}  // namespace heed::testing_support
