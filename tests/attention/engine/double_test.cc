// The fused path in double on each instruction set, compared with plain loops in long double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attention/request/gradient_tensors.h"
#include "heed/attention/reference.h"
#include "support/fused.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::normal;
using testing_support::TargetTest;

using Long = std::vector<long double>;

struct Problem64 {
  Tensor<double> query, key, value, grad_out, slopes, bias, sinks;
  AttentionOptions64 options;

  Problem64(const testing_support::Sizes& s, double magnitude)
      : query(normal<double>({s.batch, s.num_heads, s.q_len, s.head_dim}, 1)),
        key(normal<double>({s.batch, s.num_kv_heads, s.kv_len, s.head_dim}, 2)),
        value(normal<double>({s.batch, s.num_kv_heads, s.kv_len, s.value_dim}, 3)),
        grad_out(normal<double>({s.batch, s.num_heads, s.q_len, s.value_dim}, 4)),
        slopes(normal<double>({s.num_heads}, 5)),
        bias(normal<double>({s.num_heads, s.q_len, s.kv_len}, 6)),
        sinks(normal<double>({s.num_heads}, 7)) {
    for (double& element : query.elements()) element *= magnitude;
    for (double& slope : slopes.elements()) slope = std::abs(slope) / 16;
  }
  Problem64(const Problem64&) = delete;
  Problem64& operator=(const Problem64&) = delete;
};

struct LongResult {
  Long out, lse, query, key, value, slopes, bias, sinks;
};

// Forward and backward pass by their definitions, with each gradient next to its step.
class LongAttention {
 public:
  explicit LongAttention(const Problem64& problem)
      : p_(problem),
        q_len_(p_.query.extent(2)),
        kv_len_(p_.key.extent(2)),
        head_dim_(p_.query.extent(3)),
        value_dim_(p_.value.extent(3)),
        mask_(materialize_additive(p_.options.mask,
                                   {p_.query.extent(0), p_.query.extent(1), q_len_, kv_len_, 0})) {}

  LongResult compute() && {
    const auto size = [](const Tensor<double>& t) {
      return static_cast<std::size_t>(t.num_elements());
    };
    result_ = {Long(size(p_.grad_out)), {},
               Long(size(p_.query)),    Long(size(p_.key)),
               Long(size(p_.value)),    Long(size(p_.slopes)),
               Long(size(p_.bias)),     Long(size(p_.sinks))};
    for (std::int64_t b = 0; b < p_.query.extent(0); ++b)
      for (std::int64_t h = 0; h < p_.query.extent(1); ++h)
        for (std::int64_t q = 0; q < q_len_; ++q) row(b, h, q);
    return std::move(result_);
  }

 private:
  static std::size_t at(const Tensor<double>& t, std::int64_t b, std::int64_t h, std::int64_t i,
                        std::int64_t d) {
    return static_cast<std::size_t>(((b * t.extent(1) + h) * t.extent(2) + i) * t.extent(3) + d);
  }

  void row(std::int64_t b, std::int64_t h, std::int64_t q) {
    const std::int64_t kv = h / (p_.query.extent(1) / p_.key.extent(1));
    const auto keys = static_cast<std::size_t>(kv_len_);
    const long double scale = 1 / std::sqrt(static_cast<double>(head_dim_));
    const long double cap = p_.options.softcap;
    Long scores(keys), tanhs(keys), weights(keys), grads(keys);
    long double largest = p_.options.sinks ? p_.sinks(h) : -INFINITY;
    for (std::int64_t k = 0; k < kv_len_; ++k) {
      const auto i = static_cast<std::size_t>(k);
      for (std::int64_t d = 0; d < head_dim_; ++d) {
        scores[i] += static_cast<long double>(p_.query(b, h, q, d)) * p_.key(b, kv, k, d);
      }
      scores[i] *= scale;
      if (cap != 0) scores[i] = cap * (tanhs[i] = std::tanh(scores[i] / cap));
      if (p_.options.alibi_slopes) {
        scores[i] -= static_cast<long double>(p_.slopes(h)) * std::abs(q - k);
      }
      if (p_.options.bias) scores[i] += p_.bias(h, q, k);
      scores[i] += mask_(b, h, q, k);
      largest = std::max(largest, scores[i]);
    }
    long double sum = p_.options.sinks ? std::exp(p_.sinks(h) - largest) : 0;
    for (std::size_t i = 0; i < keys; ++i) sum += weights[i] = std::exp(scores[i] - largest);
    result_.lse.push_back(largest + std::log(sum));
    long double delta = 0;
    for (std::int64_t k = 0; k < kv_len_; ++k) {
      const auto i = static_cast<std::size_t>(k);
      weights[i] /= sum;
      for (std::int64_t d = 0; d < value_dim_; ++d) {
        result_.out[at(p_.grad_out, b, h, q, d)] += weights[i] * p_.value(b, kv, k, d);
        result_.value[at(p_.value, b, kv, k, d)] += weights[i] * p_.grad_out(b, h, q, d);
        grads[i] += static_cast<long double>(p_.grad_out(b, h, q, d)) * p_.value(b, kv, k, d);
      }
      delta += weights[i] * grads[i];
    }
    if (p_.options.sinks) {
      result_.sinks[static_cast<std::size_t>(h)] -= std::exp(p_.sinks(h) - largest) / sum * delta;
    }
    for (std::int64_t k = 0; k < kv_len_; ++k) {
      const auto i = static_cast<std::size_t>(k);
      long double grad = weights[i] * (grads[i] - delta);
      result_.slopes[static_cast<std::size_t>(h)] -= grad * std::abs(q - k);
      result_.bias[static_cast<std::size_t>((h * q_len_ + q) * kv_len_ + k)] += grad;
      if (cap != 0) grad *= 1 - tanhs[i] * tanhs[i];
      for (std::int64_t d = 0; d < head_dim_; ++d) {
        result_.query[at(p_.query, b, h, q, d)] += scale * grad * p_.key(b, kv, k, d);
        result_.key[at(p_.key, b, kv, k, d)] += scale * grad * p_.query(b, h, q, d);
      }
    }
  }

  const Problem64& p_;
  std::int64_t q_len_, kv_len_, head_dim_, value_dim_;
  Tensor<float> mask_;
  LongResult result_;
};

long double error(const Tensor<double>& found, const Long& exact, long double& largest) {
  long double sum = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const long double difference = found.elements()[i] - exact[i];
    sum += difference * difference;
    largest = std::max(largest, std::abs(exact[i]));
  }
  return std::sqrt(sum / static_cast<long double>(std::max<std::size_t>(exact.size(), 1)));
}

// Expects at most twice the error of plain loops in double. Because these may be lucky, `roundings`
// roundings of the largest number are always allowed.
void expect_accurate(const char* name, const Tensor<double>& found, const Tensor<double>& plain,
                     const Long& exact, double roundings) {
  if (found.empty()) return;
  long double largest = 1;
  const long double by_kernels = error(found, exact, largest);
  const long double by_loops = error(plain, exact, largest);
  EXPECT_LE(by_kernels, 2 * by_loops + roundings * 0x1p-53L * largest) << name;
}

class FusedDouble : public TargetTest {
 protected:
  static void expect_two_times_plain(const Problem64& p, const std::string& what) {
    SCOPED_TRACE(what + " on " + table().name);
    const auto shapes = check_shapes("test", p.query.view(), p.key.view(), p.value.view());
    const auto request = check_request("test", shapes, p.options);
    const auto& kernels = *table().in_double;
    AttentionOutput<double> forward{Tensor<double>(p.grad_out.shape()),
                                    Tensor<double>({shapes.batch, shapes.num_heads, shapes.q_len})};
    const auto inputs = call_of<double, double>(request, p.query, p.key, p.value);
    const ForwardCall<double> call{inputs, rows_of(forward.out.view()), forward.lse};
    FusedPass<double>(kernels, request, Pass::kForward, 2).forward({&call, 1});
    GradientTensors<double> gradients(request, p.query.shape(), p.key.shape(), p.value.shape());
    const BackwardCall<double> back{inputs, rows_of(DoubleView(p.grad_out)),
                                    rows_of(DoubleView(forward.out)), forward.lse,
                                    gradients.targets()};
    FusedPass<double>(kernels, request, Pass::kBackward, 2).backward({&back, 1});
    const auto found = std::move(gradients).take();
    const auto plain = reference::attention(p.query, p.key, p.value, p.options);
    const auto plain_gradients =
        reference::attention_backward(p.grad_out, p.query, p.key, p.value, p.options);
    const LongResult exact = LongAttention(p).compute();
    // Weights are as wrong as their scores: by some roundings of the largest.
    long double largest = 1;
    error(plain.lse, exact.lse, largest);
    const double roundings = 2 + 2 * static_cast<double>(largest);
    expect_accurate("out", forward.out, plain.out, exact.out, 2);
    expect_accurate("lse", forward.lse, plain.lse, exact.lse, 2);
    expect_accurate("query", found.query, plain_gradients.query, exact.query, roundings);
    expect_accurate("key", found.key, plain_gradients.key, exact.key, roundings);
    expect_accurate("value", found.value, plain_gradients.value, exact.value, roundings);
    expect_accurate("slopes", found.alibi_slopes, plain_gradients.alibi_slopes, exact.slopes,
                    roundings * static_cast<double>(p.key.extent(2)));
    expect_accurate("bias", found.bias, plain_gradients.bias, exact.bias, roundings);
    expect_accurate("sinks", found.sinks, plain_gradients.sinks, exact.sinks, roundings);
  }
};
HEED_RUN_ON_EVERY_TARGET(FusedDouble);

TEST_P(FusedDouble, IsAsExactAsPlainLoops) {
  if (std::numeric_limits<long double>::digits <= 53) GTEST_SKIP() << "long double is double here";
  for (const std::int64_t kv_len : {1, 127, 129, 1200}) {
    for (const std::int64_t dim : {1, 8, 33}) {
      const testing_support::Sizes sizes{.num_heads = 4,
                                         .num_kv_heads = 2,
                                         .q_len = 13,
                                         .kv_len = kv_len,
                                         .head_dim = dim,
                                         .value_dim = dim + 1};
      Problem64 plain(sizes, 1);
      expect_two_times_plain(plain, "plain " + std::to_string(kv_len) + " " + std::to_string(dim));
      Problem64 all(sizes, 3);
      all.options.mask = sliding_window(300, 40, Alignment::bottom_right()) &
                         Mask::where([](int, int h, int, int k) { return (k + h) % 5 != 1; });
      all.options.softcap = 5;
      all.options.alibi_slopes = all.slopes;
      all.options.bias = all.bias;
      all.options.sinks = all.sinks;
      all.options.query_offset = 0;
      if (kv_len >= 13) {
        all.options.mask = sliding_window(300, 40, Alignment::top_left());
        expect_two_times_plain(all, "all " + std::to_string(kv_len) + " " + std::to_string(dim));
      }
    }
  }
}

TEST_P(FusedDouble, HasTheSameBitsForAnyNumberOfThreads) {
  const Problem64 p({.num_heads = 2, .num_kv_heads = 1, .q_len = 2, .kv_len = 5000}, 2);
  const auto request = check_request(
      "test", check_shapes("test", p.query.view(), p.key.view(), p.value.view()), p.options);
  const auto& kernels = *table().in_double;
  std::vector<Tensor<double>> found;
  for (const int threads : {1, 2, 5}) {
    const auto& out = found.emplace_back(p.grad_out.shape());
    const ForwardCall<double> call{call_of<double, double>(request, p.query, p.key, p.value),
                                   rows_of(found.back().view()),
                                   {}};
    FusedPass<double>(kernels, request, Pass::kForward, threads).forward({&call, 1});
    EXPECT_TRUE(testing_support::same_bits(out, found.front())) << threads;
  }
}

}  // namespace
}  // namespace heed
