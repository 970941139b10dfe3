// The gradients of attention by feature maps compared with central differences, in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "heed/attention/linear_attention.h"
#include "heed/core/parallel.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

template <class Real>
struct FeatureMapCase {
  FeatureMapOptions options;
  Tensor<Real> query, key, value, grad_out;

  FeatureMapCase(const FeatureMapOptions& o, std::int64_t q_len, std::int64_t kv_len)
      : options(o),
        query(normal<Real>({2, 4, q_len, 3}, 1)),
        key(normal<Real>({2, 2, kv_len, 3}, 2)),
        value(normal<Real>({2, 2, kv_len, 5}, 3)),
        grad_out(normal<Real>({2, 4, q_len, 5}, 4)) {}

  double loss() const {
    const auto out = feature_map_attention(query, key, value, options);
    double sum = 0;
    for (std::size_t i = 0; i < out.elements().size(); ++i) {
      sum += out.elements()[i] * grad_out.elements()[i];
    }
    return sum;
  }

  FeatureMapGradients<Real> gradients() const {
    return feature_map_attention_backward(grad_out, query, key, value, options);
  }
};

void expect_feature_map_differences(const FeatureMapCase<double>& c, Tensor<double>& at,
                                    const Tensor<double>& grad, const std::string& what) {
  ASSERT_EQ(grad.shape(), at.shape()) << what;
  double largest = 0;
  for (std::size_t i = 0; i < at.elements().size(); ++i) {
    double& x = at.elements()[i];
    const double before = x;
    x = before + 1e-6;
    const double above = c.loss();
    x = before - 1e-6;
    const double below = c.loss();
    x = before;
    const double expected = (above - below) / 2e-6;
    largest = std::max(largest,
                       std::abs(grad.elements()[i] - expected) / std::max(1.0, std::abs(expected)));
  }
  EXPECT_LE(largest, 1e-6) << what;
}

TEST(FeatureMapBackward, IsTheDerivative) {
  for (const FeatureMap map : {FeatureMap::kEluPlusOne, FeatureMap::kRelu}) {
    for (const bool causal : {false, true}) {
      for (const bool normalized : {false, true}) {
        FeatureMapCase<double> c({map, causal, normalized}, 4, causal ? 4 : 6);
        const auto gradients = c.gradients();
        const std::string what = std::string(map == FeatureMap::kRelu ? "relu" : "elu") +
                                 (causal ? ", causal" : "") +
                                 (normalized ? ", normalized, " : ", ");
        expect_feature_map_differences(c, c.query, gradients.query, what + "query");
        expect_feature_map_differences(c, c.key, gradients.key, what + "key");
        expect_feature_map_differences(c, c.value, gradients.value, what + "value");
      }
    }
  }
}

TEST(FeatureMapBackward, FloatIsCloseAndTheSameOnAnyThreads) {
  const FeatureMapOptions options{.causal = true};
  const auto exact = FeatureMapCase<double>(options, 40, 40).gradients();
  const auto found = FeatureMapCase<float>(options, 40, 40).gradients();
  double largest = 0;
  for (std::size_t i = 0; i < found.key.elements().size(); ++i) {
    largest = std::max(largest, std::abs(found.key.elements()[i] - exact.key.elements()[i]));
  }
  EXPECT_LE(largest, 1e-4);
  const ThreadLimit limit(1);
  EXPECT_TRUE(same_bits(FeatureMapCase<float>(options, 40, 40).gradients().key, found.key));
}

TEST(FeatureMapBackward, QueriesThatMatchNothingGiveAndGetNone) {
  FeatureMapCase<double> c({FeatureMap::kRelu, false, true}, 2, 3);
  for (double& x : c.query.elements()) x = -1;
  const auto gradients = c.gradients();
  for (const auto* gradient : {&gradients.query, &gradients.key, &gradients.value}) {
    for (const double number : gradient->elements()) EXPECT_EQ(number, 0);
  }
}

TEST(FeatureMapBackward, EmptyAndMisfittingShapes) {
  const Tensor<float> none({1, 0, 4, 2});
  EXPECT_EQ(feature_map_attention_backward(none, none, none, none).key.shape(), none.shape());
  const Tensor<float> x({1, 2, 4, 2});
  const Tensor<float> shorter({1, 2, 3, 2});
  EXPECT_THAT([&] { feature_map_attention_backward(shorter, x, x, x); },
              Refuses("grad_out", "[1, 2, 3, 2]"));
  EXPECT_THAT([&] { feature_map_attention_backward(x, x, shorter, shorter, {.causal = true}); },
              Refuses("q_len", "4"));
}

}  // namespace
}  // namespace heed
