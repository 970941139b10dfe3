// Compares the errors of the fused path with those of a plain float computation over many random
// problems. Errors are measured against the reference in double.
//
// A single problem says little: a plain computation is often lucky, especially in a tensor of few
// numbers. One in eight of its errors exceeds five times that of another equally good computation,
// as with two normal numbers; the control below shows it. So the test compares the distributions of
// errors over all problems: their median and the 90, 95 and 99 % quantiles.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "attention/engine/swept_options.h"
#include "heed/attention/packed.h"
#include "heed/attention/reference.h"
#include "support/drawn_attention.h"
#include "support/exact.h"
#include "support/fused.h"
#include "support/gradients.h"
#include "support/kernel_tables.h"

namespace heed { namespace {

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
  testing_support::SweptOptions options;
  const std::uint32_t seed = random() % 1000;
  if (random() % 2 == 0) options.masks.push_back(seed / 8 * 13 + seed % 8);
  options.has_sinks = random() % 2 == 0;
  if (modifies_scores) {
    options.softcap = one_of(random, {0.0F, 0.0F, 20.0F});
    options.has_alibi = random() % 2 == 0;
    options.bias = random() % 2 == 0 ? 1 + random() % 1000 : 0;
  }
  options.dropout = one_of(random, {0.0F, 0.0F, 0.0F, 0.3F});
  drawn.options.push_back(options.row());
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

// The errors of one tensor over all problems, relative to the size of the exact result, and at
// least the error of rounding the exact result.
class Errors {
 public:
  void add(const Tensor<float>& found, const Tensor<double>& exact) {
    if (exact.empty() || !is_finite(exact)) return;
    const double size = root_mean_square_error(Tensor<float>(exact.shape()), exact);
    if (size == 0) return;
    errors_.push_back(std::max(root_mean_square_error(found, exact),
                               root_mean_square_error(rounded(exact), exact)) /
                      size);
  }
  // Returns the quantile of the errors.
  double quantile(double share) {
    const auto index = static_cast<std::size_t>(share * static_cast<double>(errors_.size() - 1));
    std::nth_element(errors_.begin(), errors_.begin() + static_cast<std::ptrdiff_t>(index),
                     errors_.end());
    return errors_[index];
  }
  std::size_t count() const { return errors_.size(); }

 private:
  std::vector<double> errors_;
};

// The errors by name of the tensor.
using Sweep = std::map<std::string, Errors>;

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
  const DrawnAttention& problem;
  Tensor<float> grad_out = grad_out_for(problem.views());
  testing_support::Expected forward = expected_of(problem.views(), problem.options());
  testing_support::ExpectedGradients gradients =
      expected_gradients(grad_out, problem.views(), problem.options());
};

void add(const Exact& expected, const AttentionOutput<float>& forward,
         const AttentionGradients<float>& found, Sweep& sweep) {
  const AttentionGradients<double>& exact = expected.gradients.exact;
  const auto& lse = expected.forward.exact.lse;
  sweep["out"].add(forward.out, expected.forward.exact.out);
  sweep["lse"].add(finite(forward.lse, lse), finite(lse, lse));
  sweep["query"].add(found.query, exact.query);
  sweep["key"].add(found.key, exact.key);
  sweep["value"].add(found.value, exact.value);
  sweep["slopes"].add(found.alibi_slopes, exact.alibi_slopes);
  sweep["bias"].add(found.bias, exact.bias);
  sweep["sinks"].add(found.sinks, exact.sinks);
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
AtShares ratios(Errors& of, Errors& to) {
  AtShares result{};
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = of.quantile(kShares[i]) / to.quantile(kShares[i]);
  }
  return result;
}

// The bounds are twice the plain computation's errors, except for:
//
// - Slopes and biases. The plain computation computes delta = Σ weight · grad_weight from the same
// grad_weights from which it is subtracted, so that their rounding errors cancel in a sum over
// keys. The kernels use Σ grad_out · out, which saves a pass over the keys. Against a plain
// computation that does the same, the ratios on AVX-512 are 1.5, 1.7, 1.9 and 6.2 for slopes and
// 1.6, 1.4, 1.9 and 1.5 for biases.
// - SSE4, which has no fused multiply-add: rows with one weight near 1 keep a rounding error where
// the plain computation cancels to 0. Its 95 % quantile of biases is 5.7 over the problems that GCC
// draws and 6.5 over those of Clang, which draws in another order.
AtShares bounds(const std::string& target, const std::string& name) {
  if (name == "slopes") return {2.7, 4, 6.5, 10.5};
  if (name == "bias") return {2, 3.9, target == "SSE4" ? 7.0 : 6.0, 5};
  if (target == "SSE4" && (name == "query" || name == "key")) return {2, 2, 2, 12.5};
  return {2, 2, 2, 2};
}

void expect_at_most_twice_the_plain_error(bool modifies_scores) {
  std::map<std::string, Sweep> sweeps;
  std::mt19937 random(5);
  for (int i = 0; i < kProblems / 2; ++i) {
    const DrawnAttention problem(draw(random, modifies_scores));
    const Exact expected{problem};
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
    for (auto& [name, errors] : sweep) {
      if (target == "plain" || errors.count() == 0) continue;
      ASSERT_GT(errors.count(), 50U) << name;
      const AtShares found = ratios(errors, sweeps["plain"][name]);
      const AtShares allowed = bounds(target, name);
      for (std::size_t share = 0; share < found.size(); ++share) {
        EXPECT_LE(found[share], allowed[share]) << target << ' ' << name << ' ' << kShares[share];
      }
    }
  }
}

TEST(AccuracySweep, PlainScores) { expect_at_most_twice_the_plain_error(false); }

TEST(AccuracySweep, ModifiedScores) { expect_at_most_twice_the_plain_error(true); }

}  // namespace
}  // namespace heed
