// The gradient of every function of ops.h compared with central differences, over awkward shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "heed/attention/select_blocks.h"
#include "heed/nn/ops.h"
#include "support/gradcheck.h"

namespace heed::nn { namespace {

using testing_support::gradient_error;
using testing_support::kGradientTolerance;
using testing_support::normal_variable;
using Variable64 = Variable<double>;

constexpr double kTolerance = kGradientTolerance;

// Returns normal numbers moved away from 0, where relu and log are not smooth.
Variable64 positive(const Shape& shape, std::uint32_t seed) {
  Variable64 x = normal_variable(shape, seed);
  for (double& element : x.writable_value().elements()) element = std::abs(element) + 0.1;
  return x;
}

TEST(Gradients, OfArithmetic) {
  const std::vector<std::pair<Shape, Shape>> shapes{{{2, 3}, {2, 3}}, {{2, 3}, {3}},
                                                    {{3}, {2, 3}},    {{2, 1, 3}, {4, 1}},
                                                    {{}, {2}},        {{0, 3}, {3}}};
  for (const auto& [left, right] : shapes) {
    const Variable64 a = normal_variable(left, 1);
    const Variable64 b = normal_variable(right, 2);
    EXPECT_LE(gradient_error({a, b}, [&] { return a + b; }), kTolerance);
    EXPECT_LE(gradient_error({a, b}, [&] { return a - b; }), kTolerance);
    EXPECT_LE(gradient_error({a, b}, [&] { return a * b; }), kTolerance);
    EXPECT_LE(gradient_error({a}, [&] { return a * a; }), kTolerance);
    EXPECT_LE(gradient_error({a}, [&] { return -2.5 * a; }), kTolerance);
  }
}

TEST(Gradients, OfMatrixProducts) {
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{2, 3}, {3, 5}},          {{4, 2, 3}, {4, 3, 5}}, {{4, 2, 3}, {3, 5}}, {{2, 3}, {4, 3, 1}},
      {{2, 1, 2, 3}, {5, 3, 1}}, {{2, 0}, {0, 5}},       {{0, 2, 3}, {3, 5}}};
  for (const auto& [left, right] : shapes) {
    const Variable64 a = normal_variable(left, 1);
    const Variable64 b = normal_variable(right, 2);
    EXPECT_LE(gradient_error({a, b}, [&] { return matmul(a, b); }), kTolerance);
  }
}

TEST(Gradients, OfLinear) {
  const Variable64 weight = normal_variable({5, 3}, 1);
  const Variable64 bias = normal_variable({5}, 2);
  for (const Shape& shape : {Shape{3}, Shape{7, 3}, Shape{2, 4, 3}, Shape{0, 3}}) {
    const Variable64 x = normal_variable(shape, 3);
    EXPECT_LE(gradient_error({x, weight, bias}, [&] { return linear(x, weight, bias); }),
              kTolerance);
    EXPECT_LE(gradient_error({x, weight}, [&] { return linear(x, weight); }), kTolerance);
  }
  const Variable64 nothing = normal_variable({4, 0}, 4);
  const Variable64 no_weight = normal_variable({5, 0}, 5);
  EXPECT_LE(gradient_error({nothing, bias}, [&] { return linear(nothing, no_weight, bias); }),
            kTolerance);
}

TEST(Gradients, OfRearrangement) {
  const Variable64 x = normal_variable({2, 3, 5}, 1);
  EXPECT_LE(gradient_error({x}, [&] { return reshape(x, {6, 5}); }), kTolerance);
  EXPECT_LE(gradient_error({x}, [&] { return permute(x, {2, 0, 1}); }), kTolerance);
  EXPECT_LE(gradient_error({x}, [&] { return transpose(x); }), kTolerance);
  EXPECT_LE(gradient_error({x}, [&] { return broadcast_to(x, {4, 2, 3, 5}); }), kTolerance);
  EXPECT_LE(gradient_error({x}, [&] { return slice(x, 1, 1, 3) * slice(x, 1, 0, 2); }), kTolerance);
  EXPECT_LE(gradient_error({x}, [&] { return slice(x, -1, 2, 2); }), kTolerance);
  EXPECT_LE(gradient_error({x}, [&] { return select(x, 1, 2); }), kTolerance);
  EXPECT_LE(gradient_error({x},
                           [&] {
                             const auto parts = split(x, 2);
                             return concat<double>({parts[2], parts[0], parts[0]}, -1);
                           }),
            kTolerance);
  const Variable64 y = normal_variable({2, 3, 5}, 2);
  for (int dim = -3; dim < 3; ++dim) {
    EXPECT_LE(gradient_error({x, y}, [&] { return concat<double>({x, y}, dim); }), kTolerance);
    EXPECT_LE(gradient_error({x, y}, [&] { return stack<double>({x, y}, dim); }), kTolerance);
  }
}

TEST(Gradients, OfElementwiseFunctions) {
  const Variable64 x = normal_variable({3, 7}, 1);
  const Variable64 above = positive({3, 7}, 2);
  EXPECT_LE(gradient_error({above, x}, [&] { return relu(above) + relu(above * -1.0); }),
            kTolerance);
  EXPECT_LE(gradient_error({x}, [&] { return tanh(x); }), kTolerance);
  EXPECT_LE(gradient_error({x}, [&] { return sigmoid(x); }), kTolerance);
  EXPECT_LE(gradient_error({x}, [&] { return exp(x); }), kTolerance);
  EXPECT_LE(gradient_error({above}, [&] { return log(above); }), kTolerance);
  EXPECT_LE(gradient_error({x}, [&] { return dropout(x, {0.4F, 7}); }), kTolerance);
}

TEST(Gradients, OfFunctionsOverRows) {
  const Variable64 x = normal_variable({2, 3, 5}, 1);
  EXPECT_LE(gradient_error({x}, [&] { return softmax(x); }), kTolerance);
  EXPECT_LE(gradient_error({x}, [&] { return log_softmax(x); }), kTolerance);
  const Tensor<std::int64_t> targets({2, 3}, {4, -100, 0, 2, 2, -100});
  EXPECT_LE(gradient_error({x}, [&] { return cross_entropy<double>(x, targets); }), kTolerance);

  for (const Shape& shape : {Shape{5}, Shape{3, 5}, Shape{2, 3, 5}}) {
    const Variable64 weight = normal_variable(shape, 2);
    const Variable64 bias = normal_variable(shape, 3);
    EXPECT_LE(gradient_error({x, weight, bias}, [&] { return layer_norm(x, weight, bias); }),
              kTolerance);
  }
}

TEST(Gradients, OfTablesAndSums) {
  const Variable64 table = normal_variable({5, 3}, 1);
  const Tensor<std::int64_t> ids({2, 4}, {0, 1, 1, 4, 4, 4, 2, 0});
  EXPECT_LE(gradient_error({table}, [&] { return embedding<double>(ids, table); }), kTolerance);
  EXPECT_LE(gradient_error({table}, [&] { return sum(table * table); }), kTolerance);
  EXPECT_LE(gradient_error({table}, [&] { return mean(table * table); }), kTolerance);
}

TEST(Gradients, EmbeddingGivesThePaddingRowNone) {
  const Variable64 table = normal_variable({3, 2}, 1);
  sum(embedding<double>(Tensor<std::int64_t>({4}, {0, 1, 1, 2}), table, 1)).backward();
  EXPECT_THAT(table.grad().elements(), testing::ElementsAre(1, 1, 0, 0, 1, 1));
}

// Options alone and in common pairs.
TEST(Gradients, OfAttention) {
  const Variable64 query = normal_variable({2, 4, 5, 3}, 1);
  const Variable64 key = normal_variable({2, 2, 7, 3}, 2);
  const Variable64 value = normal_variable({2, 2, 7, 2}, 3);
  const LearnedTerms<double> learned{normal_variable({4}, 6), normal_variable({4, 1, 7}, 4),
                                     normal_variable({4}, 5)};
  std::vector<AttentionOptions64> cases(1);
  cases.push_back({.mask = causal_bottom_right()});
  cases.push_back({.softcap = 2, .dropout = {0.3F, 5}});
  cases.push_back({.mask = sliding_window(1, 2, Alignment::bottom_right()), .scale = 0.7});
  cases.push_back({.score_mod = [](auto score, int, int head, int q_idx, int kv_idx) {
    return score * score * 0.1F + 0.2F * float(head) * float(q_idx - kv_idx);
  }});
  cases.push_back({.mask = causal_top_left(), .dropout = {0.3F, 9}});
  for (const auto& options : cases) {
    EXPECT_LE(
        gradient_error({query, key, value}, [&] { return attention(query, key, value, options); }),
        kTolerance);
    EXPECT_LE(gradient_error({query, key, value, learned.alibi_slopes, learned.bias, learned.sinks},
                             [&] { return attention(query, key, value, options, learned); }),
              kTolerance);
  }
}

TEST(Gradients, OfRelativePositions) {
  const Variable64 query = normal_variable({2, 4, 5, 3}, 1);
  const Variable64 key = normal_variable({2, 2, 7, 3}, 2);
  const Variable64 value = normal_variable({2, 2, 7, 2}, 3);
  LearnedTerms<double> learned;
  learned.relative_bias = normal_variable({4, 8}, 4);
  learned.relative_key = normal_variable({5, 3}, 5);
  learned.relative_value = normal_variable({4, 5, 2}, 6);
  AttentionOptions64 options{.mask = causal_bottom_right(), .softcap = 2};
  EXPECT_THROW(attention(query, key, value, options, learned), InvalidArgument);
  options.relative_bias = {{}, RelativeBuckets::t5(8, 6)};
  EXPECT_THROW(attention(query, key, value, options, learned), InvalidArgument);
  options.relative_vectors = {.buckets = RelativeBuckets::clip(2)};
  const std::vector<Variable64> inputs{
      query, key, value, learned.relative_bias, learned.relative_key, learned.relative_value};
  EXPECT_LE(gradient_error(inputs, [&] { return attention(query, key, value, options, learned); }),
            kTolerance);
}

// The blocks are selected again for each difference, which is too small to change them.
TEST(Gradients, OfAttentionOverSelectedBlocks) {
  const Variable64 query = normal_variable({2, 4, 11, 3}, 1);
  const Variable64 key = normal_variable({2, 2, 13, 3}, 2);
  const Variable64 value = normal_variable({2, 2, 13, 2}, 3);
  EXPECT_LE(gradient_error({query, key, value},
                           [&] {
                             const BlockLayout layout =
                                 select_blocks(query.value(), key.value(),
                                               {.block = 3, .top_k = 2, .causal = true});
                             const Mask mask = Mask::blocks(layout, causal_bottom_right());
                             return attention(query, key, value, AttentionOptions64{.mask = mask});
                           }),
            kTolerance);
}

// The tables of the options end before backward() reads them.
TEST(Gradients, OfRelativePositionsWhoseTablesHaveEnded) {
  const Variable64 x = normal_variable({1, 2, 5, 4}, 1);
  const auto with_own_tables = [&] {
    const auto bias = testing_support::normal<double>({2, 5}, 2);
    const auto vectors = testing_support::normal<double>({5, 4}, 3);
    AttentionOptions64 options;
    options.relative_bias = {bias.view(), RelativeBuckets::clip(2)};
    options.relative_vectors = {vectors.view(), vectors.view(), RelativeBuckets::clip(2)};
    return attention(x, x, x, options);
  };
  EXPECT_LE(gradient_error({x}, with_own_tables), kTolerance);
}

// As in a layer whose forward() makes its slopes: they end before backward() reads them.
TEST(Gradients, OfAttentionWhoseOptionsHaveEnded) {
  const Variable64 query = normal_variable({1, 2, 3, 4}, 1);
  const Variable64 key = normal_variable({1, 2, 5, 4}, 2);
  const Variable64 value = normal_variable({1, 2, 5, 4}, 3);
  const auto forward = [&] {
    Tensor<double> slopes({2}, {0.5, 0.25});
    Tensor<double> bias = testing_support::normal<double>({2, 3, 1}, 4);
    Tensor<double> sinks({2}, {0.1, -0.3});
    auto out = attention(
        query, key, value,
        {.alibi_slopes = slopes, .bias = bias.view().broadcast_to({2, 3, 5}), .sinks = sinks});
    for (auto* tensor : {&slopes, &bias, &sinks}) {
      for (double& element : tensor->elements()) element = 1e6;
    }
    return out;
  };
  EXPECT_LE(gradient_error({query, key, value}, forward), kTolerance);
}

}  // namespace
}  // namespace heed::nn
