// Compares the errors of the fused path with those of a plain float computation over many random
// problems. Errors are measured against the reference in double.
//
// A single problem says little: a plain computation is often lucky, especially in a tensor of few
// numbers. One in eight of its errors exceeds five times that of another equally good computation,
// as with two normal numbers; the control below shows it. So the test compares the distributions of
// errors over all problems: their median and the 90, 95 and 99 % quantiles.
//
// Errors are relative to the sums of the magnitudes of what is added up, as rounding errors are.
// Relative to results, the largest errors would be those of the results that cancel most, and not
// of the least exact computations: of rows with one weight near 1 the gradients of scores are
// 10⁻⁷ to 10⁻¹⁴ of their terms, so that both computations have no correct digit, and that of a bias
// which all keys share is 0, in double some 10⁻¹⁷.
//
//   HEED_SWEEP_SEED=7 heed_tests --gtest_filter='AccuracySweep.*'
//
// draws other problems, for which the bounds hold as well, and prints the ratios of the quantiles.
// The worst problems of a failure are listed with their sizes and options.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "attention/engine/magnitudes.h"
#include "attention/engine/relative_errors.h"
#include "attention/engine/swept_problems.h"
#include "heed/attention/packed.h"
#include "heed/attention/reference.h"
#include "support/drawn_attention.h"
#include "support/exact.h"
#include "support/fused.h"
#include "support/gradients.h"
#include "support/kernel_tables.h"

namespace heed { namespace {

using testing_support::AttentionCase;
using testing_support::drawn_for_sweep;
using testing_support::DrawnAttention;
using testing_support::expected_gradients;
using testing_support::expected_of;
using testing_support::gradients_of;
using testing_support::Magnitudes;
using testing_support::normal;
using testing_support::RelativeErrors;
using testing_support::run;
using testing_support::Sizes;

constexpr int kProblems = 1200;  // half of them modify scores

std::uint32_t drawn_seed() {
  const char* text = std::getenv("HEED_SWEEP_SEED");
  return text == nullptr ? 1 : static_cast<std::uint32_t>(std::stoul(text));
}

// The errors by name of the tensor.
using Sweep = std::map<std::string, RelativeErrors>;

// Returns the lse of rows that see a key.
template <class Real>
Tensor<Real> finite(const Tensor<Real>& lse, const Tensor<double>& exact) {
  Tensor<Real> result(lse.shape());
  for (std::size_t i = 0; i < lse.elements().size(); ++i) {
    if (std::isfinite(exact.elements()[i])) result.elements()[i] = lse.elements()[i];
  }
  return result;
}

// A problem and its exact results.
struct Exact {
  int number;
  const DrawnAttention& problem;
  Tensor<float> grad_out;
  testing_support::Expected forward = expected_of(problem.views(), problem.options());
  testing_support::ExpectedGradients gradients =
      expected_gradients(grad_out, problem.views(), problem.options());
  Magnitudes magnitudes{grad_out, problem.views(), problem.options()};
};

void add(const Exact& expected, const AttentionOutput<float>& forward,
         const AttentionGradients<float>& found, Sweep& sweep) {
  const auto add_error = [&](const char* name, const Tensor<float>& is,
                             const Tensor<double>& should_be, const Tensor<double>& magnitudes) {
    sweep[name].add(expected.number, is, should_be, magnitudes);
  };
  const auto lse = finite(expected.forward.exact.lse, expected.forward.exact.lse);
  add_error("out", forward.out, expected.forward.exact.out, expected.magnitudes.out());
  add_error("lse", finite(forward.lse, expected.forward.exact.lse), lse, lse);
  const AttentionGradients<double>& exact = expected.gradients.exact;
  const AttentionGradients<double>& sums = expected.magnitudes.gradients();
  add_error("query", found.query, exact.query, sums.query);
  add_error("key", found.key, exact.key, sums.key);
  add_error("value", found.value, exact.value, sums.value);
  add_error("slopes", found.alibi_slopes, exact.alibi_slopes, sums.alibi_slopes);
  add_error("bias", found.bias, exact.bias, sums.bias);
  add_error("sinks", found.sinks, exact.sinks, sums.sinks);
}

// Reverses the elements of each row.
Tensor<float> reversed(FloatView view) {
  Tensor<float> result = to_tensor(view);
  const std::int64_t dim = view.extent(3);
  for (std::int64_t i = 0; dim > 0 && i < result.num_elements(); i += dim) {
    std::reverse(result.data() + i, result.data() + i + dim);
  }
  return result;
}

// The control: the plain computation with products summed in another order.
void add_control(const Exact& expected, Sweep& sweep) {
  const auto& in = expected.problem.views();
  const auto query = reversed(in.query);
  const auto key = reversed(in.key);
  const auto value = reversed(in.value);
  auto forward = reference::attention(query, key, value, expected.problem.options());
  auto found = reference::attention_backward(reversed(expected.grad_out), query, key, value,
                                             expected.problem.options());
  found.query = reversed(found.query);
  found.key = reversed(found.key);
  found.value = reversed(found.value);
  add(expected, {reversed(forward.out), std::move(forward.lse)}, found, sweep);
}

// Converts [batch, heads, length, dim] to [batch · length, heads, dim].
Tensor<float> packed(FloatView view) {
  const auto rows = to_tensor(view.permute({0, 2, 1, 3}));
  Tensor<float> result({view.extent(0) * view.extent(2), view.extent(1), view.extent(3)});
  std::copy(rows.elements().begin(), rows.elements().end(), result.data());
  return result;
}

Tensor<float> unpacked(const Tensor<float>& rows, std::int64_t batch) {
  const Shape shape{batch, rows.extent(0) / batch, rows.extent(1), rows.extent(2)};
  return to_tensor(FloatView(rows.data(), shape).permute({0, 2, 1, 3}));
}

// Adds the errors of the batch entries as packed sequences, by the kernels in use.
void add_packed(const Exact& expected, Sweep& sweep) {
  const auto& in = expected.problem.views();
  const auto& options = expected.problem.options();
  const std::int64_t batch = in.query.extent(0);
  std::vector<std::int64_t> queries{0};
  std::vector<std::int64_t> keys{0};
  for (std::int64_t b = 0; b < batch; ++b) {
    queries.push_back(queries.back() + in.query.extent(2));
    keys.push_back(keys.back() + in.key.extent(2));
  }
  const PackedSequences where{queries, keys};
  const auto query = packed(in.query);
  const auto key = packed(in.key);
  const auto value = packed(in.value);
  const auto forward = attention_packed_with_lse(query, key, value, where, options);
  auto found = attention_packed_backward(packed(expected.grad_out), query, key, value, where,
                                         forward, options);
  found.query = unpacked(found.query, batch);
  found.key = unpacked(found.key, batch);
  found.value = unpacked(found.value, batch);
  const Shape lse{forward.lse.extent(0), batch, in.query.extent(2)};
  add(expected,
      {unpacked(forward.out, batch),
       to_tensor(FloatView(forward.lse.data(), lse).permute({1, 0, 2}))},
      found, sweep);
}

constexpr double kShares[] = {0.5, 0.9, 0.95, 0.99};
using AtShares = std::array<double, std::size(kShares)>;

// Returns the ratios of the errors of two sweeps.
AtShares ratios(const RelativeErrors& of, const RelativeErrors& to) {
  AtShares result{};
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = of.quantile(kShares[i]) / to.quantile(kShares[i]);
  }
  return result;
}

// The bounds are twice the plain computation's errors, except for gradients of scores that are
// modified where multiply-adds are not fused (SSE4): score · log2 e − m is rounded twice there, and
// once as large as the scores, so that lse and delta = Σ grad_out · out have errors that the
// weights of the backward pass lack. Slopes have most of them, as their sums multiply the error of
// delta by distances, while in the plain computation it cancels: delta and what it is subtracted
// from have the same errors. Of seeds 1 to 8 the largest ratios there are 3.6, 5.8, 8.6 and 8.7 for
// slopes, 1.7, 2.6, 2.6 and 2.8 for values, 2.6, 1.5, 1.5 and 2.2 for biases, and 2.1 for others;
// elsewhere none exceeds 1.8.
AtShares bounds(const std::string& target, const std::string& name, bool modifies_scores) {
  if (target != "SSE4" || !modifies_scores || name == "out" || name == "lse") return {2, 2, 2, 2};
  if (name == "slopes") return {4.5, 7.2, 10.8, 11};
  if (name == "value") return {2.1, 3.2, 3.2, 3.5};
  if (name == "bias") return {3.2, 2, 2, 2.7};
  return {2, 2, 2.3, 2.7};
}

std::map<std::string, Sweep> sweep_problems(bool modifies_scores, std::uint32_t seed) {
  std::map<std::string, Sweep> sweeps;
  std::mt19937 random(seed);
  for (int i = 0; i < kProblems / 2; ++i) {
    const AttentionCase drawn = drawn_for_sweep(random, modifies_scores);
    const DrawnAttention problem(drawn);
    const Sizes& s = drawn.sizes;
    const Exact expected{
        i, problem,
        normal<float>({s.batch, s.num_heads, s.q_len, s.value_dim}, drawn.contents_seed)};
    add(expected, {expected.forward.plain.out, expected.forward.plain.lse},
        expected.gradients.plain, sweeps["plain"]);
    add_control(expected, sweeps["control"]);
    add_packed(expected, sweeps["packed"]);
    for (const auto* table : testing_support::kernels_of_numbers()) {
      add(expected, run(*table, problem.views(), problem.options()),
          gradients_of(*table, expected.grad_out, problem.views(), problem.options()),
          sweeps[table->name]);
    }
  }
  for (auto& [target, sweep] : sweeps) {
    for (auto& [name, errors] : sweep) errors.finish();
  }
  return sweeps;
}

// Returns the drawn problems of these numbers as text.
std::string describe(const std::vector<int>& numbers, bool modifies_scores, std::uint32_t seed) {
  std::ostringstream text;
  for (const int number : numbers) {
    std::mt19937 random(seed);
    for (int i = 0; i < number; ++i) drawn_for_sweep(random, modifies_scores);
    text << "\nproblem " << number << ':' << drawn_for_sweep(random, modifies_scores);
  }
  return text.str();
}

void expect_at_most_twice_the_plain_error(bool modifies_scores) {
  const std::uint32_t seed = drawn_seed();
  const auto sweeps = sweep_problems(modifies_scores, seed);
  for (const auto& [target, sweep] : sweeps) {
    for (const auto& [name, errors] : sweep) {
      if (target == "plain" || errors.count() == 0) continue;
      ASSERT_GT(errors.count(), 50U) << name;
      const AtShares found = ratios(errors, sweeps.at("plain").at(name));
      const AtShares allowed = bounds(target, name, modifies_scores);
      bool is_accurate = true;
      std::cout << target << ' ' << name << ", " << errors.count() << " problems:";
      for (std::size_t share = 0; share < found.size(); ++share) {
        is_accurate = is_accurate && found[share] <= allowed[share];
        std::cout << ' ' << found[share];
      }
      std::cout << '\n';
      EXPECT_TRUE(is_accurate) << target << ' ' << name << " of seed " << seed
                               << ", the largest errors:"
                               << describe(errors.worst(), modifies_scores, seed);
    }
  }
}

TEST(AccuracySweep, PlainScores) { expect_at_most_twice_the_plain_error(false); }

TEST(AccuracySweep, ModifiedScores) { expect_at_most_twice_the_plain_error(true); }

}  // namespace
}  // namespace heed
