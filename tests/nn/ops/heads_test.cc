// Attention and rotary positions of heads that are columns of variables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention/plan.h"
#include "heed/nn/ops.h"
#include "support/gradcheck.h"
#include "support/heap.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::gradient_error;
using testing_support::kGradientTolerance;
using testing_support::max_difference;
using testing_support::Message;
using testing_support::normal;
using testing_support::normal_variable;
using testing_support::Refuses;
using Variable64 = Variable<double>;
using Heads64 = Heads<double>;

// Copies the heads of columns: [batch, num_heads, length, head_dim].
template <class T>
Variable<T> copied(const Heads<T>& heads) {
  const auto& [num_heads, head_dim, first] = heads.columns;
  const Variable<T> columns = slice(heads.source, 2, first, heads.columns.end());
  return permute(reshape(columns, {columns.extent(0), columns.extent(1), num_heads, head_dim}),
                 {0, 2, 1, 3});
}

template <class T>
struct Operands {
  Heads<T> query, key, value;
};

// A result and all gradients of the backward pass of out · 1.
template <class T>
struct Outcome {
  Tensor<T> out;
  std::vector<Tensor<T>> grads;
};

template <class T, class Forward>
Outcome<T> outcome(const std::vector<Variable<T>>& leaves, const Forward& forward) {
  for (const auto& leaf : leaves) leaf.zero_grad();
  const Variable<T> out = forward();
  out.backward(normal<T>(out.shape(), 99));
  Outcome<T> result{to_tensor(out.value()), {}};
  for (const auto& leaf : leaves) result.grads.push_back(to_tensor(leaf.grad()));
  return result;
}

// Expects columns to give the results of copies, bit by bit where gradients are not sums in another
// order.
template <class T>
void expect_as_copied(const Operands<T>& given, const BasicAttentionOptions<T>& options = {},
                      const LearnedTerms<T>& learned = {}, double tolerance = 0) {
  std::vector<Variable<T>> leaves{given.query.source, given.key.source, given.value.source};
  for (const auto& term : {learned.alibi_slopes, learned.bias, learned.sinks}) {
    if (term.is_defined()) leaves.push_back(term);
  }
  const auto columns = outcome<T>(
      leaves, [&] { return attention(given.query, given.key, given.value, options, learned); });
  const auto copies = outcome<T>(leaves, [&] {
    const Variable<T> out =
        attention(copied(given.query), copied(given.key), copied(given.value), options, learned);
    return reshape(permute(out, {0, 2, 1, 3}),
                   {out.extent(0), out.extent(2), out.extent(1) * out.extent(3)});
  });
  EXPECT_EQ(max_difference(columns.out, copies.out), 0);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_LE(max_difference(columns.grads[i], copies.grads[i]), tolerance) << "gradient " << i;
  }
}

template <class T>
Variable<T> leaf(const Shape& shape, std::uint32_t seed) {
  return {normal<T>(shape, seed), true};
}

// Query, key and value of one projection, with fewer key heads.
template <class T>
Operands<T> fused(const Variable<T>& all) {
  return {{all, {4, 16}}, {all, {2, 16, 64}}, {all, {2, 16, 96}}};
}

template <class T>
class HeadsOf : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(HeadsOf, Types);

TYPED_TEST(HeadsOf, OneProjectionAreThoseOfCopies) {
  using T = TypeParam;
  const Operands<T> given = fused(leaf<T>({2, 70, 128}, 1));
  expect_as_copied(given);
  expect_as_copied(given, {.mask = causal() & sliding_window(9, 0), .softcap = 3});
  expect_as_copied(given, {.mask = causal(), .dropout = {0.3F, 7}},
                   {leaf<T>({4}, 2), leaf<T>({4, 70, 70}, 3), leaf<T>({4}, 4)});
}

TYPED_TEST(HeadsOf, SeveralProjectionsAreThoseOfCopies) {
  using T = TypeParam;
  const Operands<T> given{{leaf<T>({2, 5, 64}, 1), {4, 16}},
                          {leaf<T>({2, 33, 32}, 2), {2, 16}},
                          {leaf<T>({2, 33, 48}, 3), {2, 24}}};
  expect_as_copied(given);
  // Some columns are unused.
  expect_as_copied(Operands<T>{{given.query.source, {2, 16, 32}},
                               {given.key.source, {1, 16, 16}},
                               {given.value.source, {1, 24, 8}}});
}

TYPED_TEST(HeadsOf, ColumnsThatOverlapAddTheirGradients) {
  using T = TypeParam;
  const Variable<T> x = leaf<T>({2, 9, 32}, 1);
  const double tolerance = 4 * std::numeric_limits<T>::epsilon();
  expect_as_copied(Operands<T>{{x, {2, 16}}, {x, {2, 16}}, {x, {2, 16}}}, {}, {}, tolerance);
  expect_as_copied(Operands<T>{{x, {1, 16}}, {x, {1, 16, 8}}, {x, {1, 16, 16}}}, {}, {}, tolerance);
}

TEST(Heads, HaveGradients) {
  const Variable64 all = normal_variable({2, 5, 16}, 1);
  const Heads64 query{all, {4, 2}};
  const Heads64 key{all, {2, 2, 8}};
  const Heads64 value{all, {2, 2, 12}};
  const LearnedTerms<double> learned{normal_variable({4}, 2), normal_variable({4, 1, 5}, 3),
                                     normal_variable({4}, 4)};
  EXPECT_LE(gradient_error({all, learned.alibi_slopes, learned.bias, learned.sinks},
                           [&] { return attention(query, key, value, {.softcap = 2}, learned); }),
            kGradientTolerance);
  const Variable64 apart = normal_variable({2, 2, 7, 2}, 5);
  EXPECT_LE(gradient_error({all, apart}, [&] { return attention(query, {apart}, {apart}); }),
            kGradientTolerance);
}

// Only the last backward pass may overwrite kept tensors.
TEST(Heads, KeepAGraphThatIsRetained) {
  const Variable64 all = normal_variable({2, 5, 16}, 1);
  const Variable64 loss =
      sum(attention(Heads64{all, {4, 2}}, Heads64{all, {2, 2, 8}}, Heads64{all, {2, 2, 12}}));
  loss.backward({.retain_graph = true});
  const Tensor<double> once = to_tensor(all.grad());
  all.zero_grad();
  loss.backward();
  EXPECT_EQ(max_difference<double>(all.grad(), once), 0);
}

// Measures the allocation beyond the result: neither operands nor result are copied.
template <class T>
void expect_no_copies() {
  const Variable<T> all(normal<T>({4, 256, 3 * 256}, 1));
  const AttentionPlan decision = plan({.batch = 4,
                                       .num_heads = 8,
                                       .num_kv_heads = 8,
                                       .q_len = 256,
                                       .kv_len = 256,
                                       .head_dim = 32,
                                       .value_dim = 32,
                                       .dtype = data_type_of<T>(),
                                       .key_stride = 768,
                                       .value_stride = 768},
                                      BasicAttentionOptions<T>{});
  const std::int64_t lse = std::int64_t{sizeof(T)} * 4 * 8 * 256;
  const auto workspace = static_cast<std::int64_t>(decision.workspace_bytes());
  const std::int64_t one_operand = std::int64_t{sizeof(T)} * 4 * 256 * 256;
  const std::int64_t extra = testing_support::measure_extra_bytes([&] {
    return attention(Heads<T>{all, {8, 32}}, Heads<T>{all, {8, 32, 256}},
                     Heads<T>{all, {8, 32, 512}});
  });
  EXPECT_LT(extra, lse + workspace + one_operand / 4);
}
TEST(Heads, AreNotCopied) { expect_no_copies<float>(); }
TEST(Heads, AreNotCopiedInDouble) { expect_no_copies<double>(); }

TEST(Heads, RefuseColumnsThatDoNotExist) {
  const Variable<float> x(Tensor<float>({1, 3, 8}));
  const Heads<float> fits{x, {2, 4}};
  const auto refused = [&](const Heads<float>& key, const Message& text) {
    EXPECT_THAT([&] { attention(fits, key, fits); }, ThrowsMessage<InvalidArgument>(text));
  };
  refused({x, {2, 5}}, {"key", "2"});
  refused({x, {1, 4, 5}}, "from column 5");
  refused({x, {1, 4, -1}}, "from column -1");
  refused({x, {0, 4}}, {"key", "0"});
  refused({Variable<float>(Tensor<float>({3, 8})), {2, 4}}, {"key", "[3, 8]"});
  const Heads<float> outside{x, {2, 5}};
  EXPECT_THAT([&] { outside.view(); }, Refuses("source", "2"));
}

// A plan computes, but errors name the called function.
TEST(Heads, ErrorsNameTheFunctionCalled) {
  const Variable<float> x(Tensor<float>({1, 3, 8}));
  const Heads<float> four{x, {4, 2}};
  const Variable<float> longer(Tensor<float>({1, 4, 8}));
  const auto message = [&](const auto& compute) -> std::string {
    try {
      compute();
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  const Tensor<float> bias({5});
  EXPECT_THAT(message([&] { attention(four, four, four, {.bias = bias}); }),
              testing::StartsWith("attention: bias"));
  EXPECT_THAT(message([&] {
                attention(four, {x, {3, 2}}, {x, {3, 2}});
              }),
              testing::StartsWith("attention: "));
  EXPECT_THAT(message([&] {
                attention(four, four, {longer, {4, 2}});
              }),
              testing::StartsWith("attention: value kv_len"));
  const Variable<float> apart(Tensor<float>({1, 4, 3, 2}));
  EXPECT_THAT(message([&] { attention(x, apart, apart); }),
              testing::StartsWith("attention: query has shape [1, 3, 8], expected 4 dimensions"));
}

constexpr auto kHalves = RotaryPairing::kHalves;
constexpr auto kNeighbours = RotaryPairing::kNeighbours;

struct Caches {
  Variable64 cos;
  Variable64 sin;
};

Caches caches(std::int64_t max_len, std::int64_t rotary_dim) {
  auto [cos, sin] = rotary_caches<double>(max_len, rotary_dim, 100);
  return {std::move(cos), std::move(sin)};
}

TEST(RotaryOfHeads, IsThatOfTheOperator) {
  const Caches at = caches(12, 4);
  const Variable64 all = normal_variable({2, 5, 24}, 1);
  const Heads64 some{all, {3, 6, 4}};
  const RotaryOptions options{.rotary_dim = 4, .offset = 3};
  const Heads64 turned = rotary_embedding(some, at.cos, at.sin, kNeighbours, options);
  EXPECT_EQ(turned.source.shape(), (Shape{2, 5, 18}));
  const Tensor<double> expected =
      heed::rotary_embedding(some.view(), at.cos.value(), at.sin.value(), kNeighbours, options);
  EXPECT_EQ(max_difference<double>(turned.view(), expected), 0);
}

TEST(RotaryOfHeads, HasGradients) {
  const Caches at = caches(12, 4);
  const Variable64 all = normal_variable({2, 5, 24}, 1);
  const Variable64 apart = normal_variable({2, 3, 5, 6}, 2);
  const RotaryOptions options{.rotary_dim = 4, .offset = 2};
  for (const RotaryPairing pairing : {kHalves, kNeighbours}) {
    for (const Heads64& heads : {Heads64{all, {4, 6}}, Heads64{all, {3, 6, 4}}, Heads64{apart}}) {
      EXPECT_LE(
          gradient_error(
              {heads.source},
              [&] { return rotary_embedding(heads, at.cos, at.sin, pairing, options).source; }),
          kGradientTolerance);
    }
  }
}

// Query and key are rotated, the value is not: three functions add gradients to one source.
TEST(RotaryOfHeads, GoesWithAttentionOfTheSameProjection) {
  const Caches at = caches(5, 2);
  const Variable64 all = normal_variable({1, 5, 16}, 1);
  EXPECT_LE(gradient_error({all},
                           [&] {
                             return attention(
                                 rotary_embedding({all, {4, 2}}, at.cos, at.sin, kHalves),
                                 rotary_embedding({all, {2, 2, 8}}, at.cos, at.sin, kHalves),
                                 Heads64{all, {2, 2, 12}}, {.mask = causal()});
                           }),
            kGradientTolerance);
}

TEST(RotaryOfHeads, KeepsItsPositions) {
  const Caches at = caches(12, 6);
  const Heads64 heads{normal_variable({2, 3, 6}, 1), {1, 6}};
  const auto forward = [&] {
    Tensor<std::int64_t> positions({3}, {7, 0, 11});
    auto turned = rotary_embedding(heads, at.cos, at.sin, kHalves, {.position_ids = positions});
    for (std::int64_t& position : positions.elements()) position = 1;
    return turned.source;
  };
  EXPECT_LE(gradient_error({heads.source}, forward), kGradientTolerance);
}

TEST(RotaryOfHeads, RefusesMisuse) {
  const Caches at = caches(4, 2);
  const Heads64 heads{normal_variable({1, 5, 4}, 1), {2, 2}};
  EXPECT_THAT([&] { rotary_embedding(heads, at.cos, at.sin, kHalves, {.num_heads = 2}); },
              Refuses("num_heads", "2"));
  EXPECT_THAT(
      [&] {
        rotary_embedding(heads, at.cos, normal_variable({4, 1}, 1), kHalves);
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("requires a gradient")));
  EXPECT_THAT([&] { rotary_embedding(heads, at.cos, at.sin, kHalves); },
              ThrowsMessage<InvalidArgument>(HasSubstr("5 tokens from offset 0, but cos has 4")));
}

}  // namespace
}  // namespace heed::nn
