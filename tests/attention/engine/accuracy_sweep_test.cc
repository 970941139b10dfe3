// The errors of the fused path beside those of a plain float computation, over many random
// problems. What both are measured by is the reference in double.
//
// A single problem says little: a plain computation is often lucky, most of all where few numbers
// are summed or one weight is 1. So errors are compared over all problems: the plain computation's
// is at least that of the exact result, rounded, which nobody can better; what counts are the
// median of the ratios and the one that 95 % do not exceed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/drawn_attention.h"
#include "support/exact.h"
#include "support/fused.h"
#include "support/gradients.h"

namespace heed {
namespace {

using testing_support::AttentionCase;
using testing_support::DrawnAttention;
using testing_support::expected_gradients;
using testing_support::expected_of;
using testing_support::grad_out_for;
using testing_support::gradients_of;
using testing_support::root_mean_square_error;
using testing_support::run;

constexpr int kProblems = 600;

template <class T>
T one_of(std::mt19937& random, std::initializer_list<T> choices) {
  return choices.begin()[random() % choices.size()];
}

AttentionCase draw(std::mt19937& random, bool modifies_scores) {
  AttentionCase drawn;
  drawn.sizes.batch = one_of<std::int64_t>(random, {1, 2});
  drawn.sizes.num_kv_heads = one_of<std::int64_t>(random, {1, 2});
  drawn.sizes.num_heads = drawn.sizes.num_kv_heads * one_of<std::int64_t>(random, {1, 2, 4});
  drawn.sizes.q_len = one_of<std::int64_t>(random, {1, 7, 32, 60});
  drawn.sizes.kv_len = one_of<std::int64_t>(random, {5, 64, 130, 300});
  drawn.sizes.head_dim = one_of<std::int64_t>(random, {8, 16, 40, 64});
  drawn.sizes.value_dim = one_of<std::int64_t>(random, {8, 16, 40, 64});
  drawn.magnitude = one_of(random, {0.3F, 1.0F, 3.0F, 10.0F, 30.0F});
  drawn.query_offset = drawn.sizes.kv_len - drawn.sizes.q_len;
  // Structural masks; irregular ones modify scores (drawn_attention.cc).
  const std::uint32_t seed = random() % 1000;
  if (random() % 2 == 0) drawn.masks.push_back(seed / 8 * 13 + seed % 8);
  drawn.has_sinks = random() % 2 == 0;
  if (modifies_scores) {
    drawn.softcap = one_of(random, {0.0F, 0.0F, 20.0F});
    drawn.has_alibi = random() % 2 == 0;
    drawn.bias = random() % 2 == 0 ? 1 + random() % 1000 : 0;
  }
  drawn.dropout = one_of(random, {0.0F, 0.0F, 0.0F, 0.3F});
  return drawn;
}

bool is_finite(const Tensor<double>& tensor) {
  return std::all_of(tensor.elements().begin(), tensor.elements().end(),
                     [](double x) { return std::isfinite(x); });
}

Tensor<float> rounded(const Tensor<double>& exact) {
  Tensor<float> result(exact.shape());
  std::copy(exact.elements().begin(), exact.elements().end(), result.data());
  return result;
}

// The ratios of the errors of one tensor, over all problems.
class Ratios {
 public:
  void add(const Tensor<float>& found, const Tensor<float>& plain, const Tensor<double>& exact) {
    if (exact.empty() || !is_finite(exact)) return;
    const double is = root_mean_square_error(found, exact);
    const double allowed = std::max(root_mean_square_error(plain, exact),
                                    root_mean_square_error(rounded(exact), exact));
    ratios_.push_back(is == 0 ? 0 : is / allowed);
  }
  // The one that a share of them does not exceed.
  double quantile(double share) {
    const auto index = static_cast<std::size_t>(share * static_cast<double>(ratios_.size() - 1));
    std::nth_element(ratios_.begin(), ratios_.begin() + static_cast<std::ptrdiff_t>(index),
                     ratios_.end());
    return ratios_[index];
  }
  std::size_t count() const { return ratios_.size(); }

 private:
  std::vector<double> ratios_;
};

// By the names of tensors.
using Sweep = std::map<std::string, Ratios>;

// The lse of rows that see something.
template <class Real>
Tensor<Real> finite(const Tensor<Real>& lse, const Tensor<double>& exact) {
  Tensor<Real> result(lse.shape());
  for (std::size_t i = 0; i < lse.elements().size(); ++i) {
    if (std::isfinite(exact.elements()[i])) result.elements()[i] = lse.elements()[i];
  }
  return result;
}

// What the plain computation and the exact one make of a problem.
struct Reference {
  const DrawnAttention& problem;
  Tensor<float> grad_out = grad_out_for(problem.views());
  testing_support::Expected forward = expected_of(problem.views(), problem.options());
  testing_support::ExpectedGradients gradients =
      expected_gradients(grad_out, problem.views(), problem.options());
};

void add(const kernels::KernelTable& table, const Reference& reference, Sweep& sweep) {
  const DrawnAttention& problem = reference.problem;
  const auto& [plain, exact] = reference.forward;
  const auto forward = run(table, problem.views(), problem.options());
  sweep["out"].add(forward.out, plain.out, exact.out);
  sweep["lse"].add(finite(forward.lse, exact.lse), finite(plain.lse, exact.lse),
                   finite(exact.lse, exact.lse));
  const auto found = gradients_of(table, reference.grad_out, problem.views(), problem.options());
  const AttentionGradients<float>& by_loops = reference.gradients.plain;
  const AttentionGradients<double>& in_double = reference.gradients.exact;
  sweep["query"].add(found.query, by_loops.query, in_double.query);
  sweep["key"].add(found.key, by_loops.key, in_double.key);
  sweep["value"].add(found.value, by_loops.value, in_double.value);
  sweep["slopes"].add(found.alibi_slopes, by_loops.alibi_slopes, in_double.alibi_slopes);
  sweep["bias"].add(found.bias, by_loops.bias, in_double.bias);
  sweep["sinks"].add(found.sinks, by_loops.sinks, in_double.sinks);
}

// What is reached, for each tensor: the median and what 95 % do not exceed. Above 2 are
//
// - the gradients that contain delta = Σ grad_out · out, of query, key and the options: out is
//   rounded, while the plain computation sums Σ weight · grad_weight from the very numbers that it
//   subtracts this from. Where one weight is nearly 1 their roundings cancel there and not here; a
//   slope, a sink or a bias of one number shows this unmixed. Another pass over the keys would be
//   needed.
// - the gradient of values: weights are computed again from an lse in float, which is off by
//   |lse| · 2⁻²⁴; where scores are modified and without a fused multiply-add (SSE4), exponents,
//   score · log2 e − m, are besides not rounded alike in both passes.
struct Bound {
  double median;
  double most;
};

using Bounds = std::map<std::string, Bound>;

void expect_within(bool modifies_scores, const Bounds& bounds) {
  std::map<std::string, Sweep> sweeps;
  std::mt19937 random(5);
  for (int i = 0; i < kProblems / 2; ++i) {
    const DrawnAttention problem(draw(random, modifies_scores));
    const Reference reference{problem};
    for (const auto* table : kernels::supported_kernels()) {
      add(*table, reference, sweeps[table->name]);
    }
  }
  for (auto& [target, sweep] : sweeps) {
    for (const auto& [name, bound] : bounds) {
      Ratios& ratios = sweep[name];
      ASSERT_GT(ratios.count(), 50U) << name;
      const bool is_unfused = target == "SSE4" && name == "value";
      const auto& [median, most] = is_unfused ? Bound{1.6, 6} : bound;
      EXPECT_LE(ratios.quantile(0.5), median) << target << ' ' << name;
      EXPECT_LE(ratios.quantile(0.95), most) << target << ' ' << name;
    }
  }
}

TEST(AccuracySweep, PlainScores) {
  expect_within(false, {{"out", {1.1, 2}},
                        {"lse", {1.1, 2}},
                        {"query", {1.4, 3}},
                        {"key", {1.4, 3}},
                        {"value", {1.5, 6}},
                        {"sinks", {1.1, 6}}});
}

TEST(AccuracySweep, ModifiedScores) {
  expect_within(true, {{"out", {1.2, 2}},
                       {"lse", {1.2, 2.2}},
                       {"query", {1.4, 3.7}},
                       {"key", {1.4, 3.7}},
                       {"value", {1.6, 4.7}},
                       {"slopes", {2.2, 19}},
                       {"bias", {1.7, 22}},
                       {"sinks", {1.1, 11}}});
}

}  // namespace
}  // namespace heed
