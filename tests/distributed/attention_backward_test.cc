#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "distributed/divided.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "support/exact.h"
#include "support/options.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using distributed::DividedBy;
using testing::ThrowsMessage;
using testing_support::divided_backward;
using testing_support::Division;
using testing_support::exactly;
using testing_support::ExactOptions;
using testing_support::Judgement;
using testing_support::largest_magnitude;
using testing_support::Lengths;
using testing_support::LseOf;
using testing_support::normal;
using testing_support::Operands;
using testing_support::Refuses;
using testing_support::same_bits;

// Computes the gradients in double on one process with the reference's loops.
AttentionGradients<double> exact_gradients(const Operands<float>& in,
                                           const AttentionOptions& options) {
  const ExactOptions exact(options);
  const Tensor<double> query = exactly(in.query);
  const Tensor<double> key = exactly(in.key);
  const Tensor<double> value = exactly(in.value);
  const auto forward = attention_with_lse(query, key, value, *exact);
  return attention_backward(exactly(in.grad_out), query, key, value, forward, *exact);
}

// Expects at most twice the error of one process, which adds in another order.
void expect_as_exact(const char* name, const Tensor<float>& found, const Tensor<float>& plain,
                     const Tensor<double>& exact) {
  const Judgement judge{.always_allowed = 0x1p-23 * largest_magnitude(exact)};
  EXPECT_EQ(judge(name, found, plain, exact), "");
}

void expect_as_exact(const AttentionGradients<float>& found, const AttentionGradients<float>& plain,
                     const AttentionGradients<double>& exact) {
  expect_as_exact("query", found.query, plain.query, exact.query);
  expect_as_exact("key", found.key, plain.key, exact.key);
  expect_as_exact("value", found.value, plain.value, exact.value);
  for (std::size_t i = 0; i < kLearnable<float>.size(); ++i) {
    const auto [name, gradient] =
        std::pair(kLearnable<float>[i].name, kLearnable<float>[i].gradient);
    expect_as_exact(name, found.*gradient, plain.*gradient, exact.*kLearnable<double>[i].gradient);
  }
}

// Expects this for each division.
void expect_gradients_of_one_process(const Operands<float>& in,
                                     std::initializer_list<Division> divisions,
                                     const AttentionOptions& options) {
  const auto forward = attention_with_lse(in.query, in.key, in.value, options);
  const auto plain = attention_backward(in.grad_out, in.query, in.key, in.value, forward, options);
  const auto exact = exact_gradients(in, options);
  for (const Division& division : divisions) {
    SCOPED_TRACE(std::to_string(division.size) + " ranks by " +
                 std::string(to_string(division.by)));
    expect_as_exact(divided_backward(in, forward, division, options), plain, exact);
  }
}

TEST(DistributedBackward, HasTheGradientsOfOneProcess) {
  const Operands<float> in({2500, 2500, 2});
  for (const Mask& mask : {causal(), Mask(), sliding_window(300, 0), longformer(64, 2)}) {
    SCOPED_TRACE(mask.description());
    expect_gradients_of_one_process(in, {{1}, {2}, {3}, {5}}, {.mask = mask});
  }
}

TEST(DistributedBackward, HasTheBitsOfOneProcessByHeads) {
  for (const std::int64_t kv_heads : {2, 6}) {
    const Operands<float> in({1300, 1300, 2, kv_heads});
    for (const AttentionOptions& options :
         {AttentionOptions{}, AttentionOptions{.mask = causal()}}) {
      const auto forward = attention_with_lse(in.query, in.key, in.value, options);
      const auto plain =
          attention_backward(in.grad_out, in.query, in.key, in.value, forward, options);
      const auto found = divided_backward(in, forward, {2, DividedBy::kHeads}, options);
      EXPECT_TRUE(same_bits(found.query, plain.query));
      EXPECT_TRUE(same_bits(found.key, plain.key));
      EXPECT_TRUE(same_bits(found.value, plain.value));
    }
  }
}

TEST(DistributedBackward, TakesAnyLengths) {
  for (const Lengths& lengths : {Lengths{0, 0}, {1, 1}, {3, 0}, {0, 3}, {1, 3000}, {2100, 1023}}) {
    SCOPED_TRACE(std::to_string(lengths.q_len) + " queries, " + std::to_string(lengths.kv_len));
    expect_gradients_of_one_process(Operands<float>(lengths), {{3}, {2, DividedBy::kHeads}}, {});
  }
}

TEST(DistributedBackward, HasTheGradientsOfWhatOptionsHold) {
  const testing_support::Sizes sizes{.batch = 1,
                                     .num_heads = 6,
                                     .num_kv_heads = 3,
                                     .q_len = 1100,
                                     .kv_len = 1100,
                                     .head_dim = 8,
                                     .value_dim = 12};
  const Operands<float> in({sizes.q_len, sizes.kv_len, sizes.batch, sizes.num_kv_heads});
  const Mask mask = sliding_window(1200, 0);
  // Without sinks, the gradient of a number added to all scores of a row is 0.
  const Tensor<float> sinks = normal<float>({6}, 5);
  const auto expect = [&](AttentionOptions options) {
    options.mask = mask;
    options.sinks = sinks;
    expect_gradients_of_one_process(in, {{3}, {3, DividedBy::kHeads}}, options);
  };
  std::uint64_t seed = 0;
  for (const auto& chosen : testing_support::alone_and_in_pairs(
           testing_support::options_where([](const testing_support::Option& option) {
             return option.is_option() && !option.hides_keys();
           }))) {
    SCOPED_TRACE(to_string(chosen));
    const testing_support::DrawnOptions<float> options(sizes, chosen, ++seed);
    expect(*options);
  }
}

TEST(DistributedBackward, HasTheGradientsOfBiasesOfEveryShape) {
  constexpr std::int64_t kLength = 1500;
  const Operands<float> in({kLength, kLength, 2, 3});
  // Without sinks, the gradient of a number added to all scores of a row is 0.
  const Tensor<float> sinks = normal<float>({6}, 5);
  const Mask mask = sliding_window(1200, 0);
  for (const Shape& shape : {Shape{6, 1, kLength}, Shape{6, kLength, 1}, Shape{1, kLength, kLength},
                             Shape{2, 1, 1, 1}}) {
    SCOPED_TRACE(to_string(shape));
    const Tensor<float> bias = normal<float>(shape, 6);
    expect_gradients_of_one_process(in, {{3}, {3, DividedBy::kHeads}},
                                    {.mask = mask, .bias = bias, .sinks = sinks});
  }
}

TEST(DistributedBackward, ThreadsOfARankChangeNoBit) {
  const Operands<float> in({1500, 1500, 2, 3});
  const Tensor<float> sinks = normal<float>({6}, 5);
  for (const Shape& shape : {Shape{6, 1, 1500}, Shape{6, 1500, 1}, Shape{1, 1500, 1500}}) {
    SCOPED_TRACE(to_string(shape));
    const Tensor<float> bias = normal<float>(shape, 6);
    const AttentionOptions options{.mask = causal(), .bias = bias, .sinks = sinks};
    const auto forward = attention_with_lse(in.query, in.key, in.value, options);
    const auto by_threads = [&](int threads) {
      set_num_threads(threads);
      auto found = divided_backward(in, forward, {2}, options);
      set_num_threads(0);
      return found;
    };
    const auto expected = by_threads(2);
    const auto found = by_threads(8);
    EXPECT_TRUE(same_bits(found.query, expected.query));
    EXPECT_TRUE(same_bits(found.key, expected.key));
    EXPECT_TRUE(same_bits(found.value, expected.value));
    EXPECT_TRUE(same_bits(found.bias, expected.bias));
    EXPECT_TRUE(same_bits(found.sinks, expected.sinks));
  }
}

// The rows of other ranks than 0 see only segments after the first: sinks are counted exactly once.
TEST(DistributedBackward, SumsSinksOnce) {
  const Operands<float> in({4096, 4096});
  const Tensor<float> sinks = normal<float>({4}, 5);
  expect_gradients_of_one_process(in, {{4}}, {.mask = sliding_window(0, 0), .sinks = sinks});
}

template <class T>
void expect_near_one_process(DividedBy by, double unit, bool keeps_out_low = true) {
  const Operands<T> in({2100, 2100});
  const BasicAttentionOptions<LseOf<T>> options{.mask = causal()};
  auto forward = attention_with_lse(in.query, in.key, in.value, options);
  if (!keeps_out_low) forward.out_low = {};
  const auto plain = attention_backward(in.grad_out, in.query, in.key, in.value, forward, options);
  const auto found = divided_backward(in, forward, {2, by}, options);
  const auto expect = [&](const char* name, const Tensor<T>& a, const Tensor<T>& b) {
    const auto number = [](T element) {
      return static_cast<double>(static_cast<LseOf<T>>(element));
    };
    double largest = 0;
    double difference = 0;
    for (std::int64_t i = 0; i < a.num_elements(); ++i) {
      largest = std::max(largest, std::abs(number(b.data()[i])));
      difference = std::max(difference, std::abs(number(a.data()[i]) - number(b.data()[i])));
    }
    EXPECT_LE(difference, unit * largest) << name;
    EXPECT_GT(largest, 0) << name;
  };
  expect("query", found.query, plain.query);
  expect("key", found.key, plain.key);
  expect("value", found.value, plain.value);
}

// For half precision allows one rounding of the largest number: sums are floats.
TEST(DistributedBackward, TakesEveryTypeOfNumber) {
  for (const DividedBy by : {DividedBy::kTokens, DividedBy::kHeads}) {
    expect_near_one_process<double>(by, 1e-13);
    expect_near_one_process<Float16>(by, 0x1p-11);
    expect_near_one_process<BFloat16>(by, 0x1p-8);
    expect_near_one_process<Float16>(by, 0x1p-11, false);
    expect_near_one_process<BFloat16>(by, 0x1p-8, false);
  }
}

// Without out_low all ranks compute out again together.
TEST(DistributedBackward, AllRanksHaveWhatOutLacksOrNone) {
  const Operands<Float16> in({2000, 2000});
  const auto forward = attention_with_lse(in.query, in.key, in.value);
  run_thread_ranks(2, [&](Communicator& ranks) {
    const auto own = [&]<class Number>(const Tensor<Number>& tensor) {
      return distributed::own_tokens(ranks, TensorView<const Number>(tensor));
    };
    AttentionOutput<Float16, float> made{own(forward.out), own(forward.lse)};
    if (ranks.rank() == 0) made.out_low = own(forward.out_low);
    const auto go_back = [&] {
      distributed::attention_backward(ranks, own(in.grad_out), own(in.query), own(in.key),
                                      own(in.value), made);
    };
    EXPECT_THAT(go_back, ThrowsMessage<InvalidArgument>(
                             "distributed::attention_backward: rank 1 has no out_low, but rank 0 "
                             "has out_low"));
    if (ranks.rank() == 1) made.out_low = to_tensor(made.out.view().slice(2, 0, 5));
    EXPECT_THAT(go_back, Refuses("forward.out_low", "[1, 4, 5, 12]"));
  });
}

TEST(DistributedBackward, ComputesRowsThatLookTwice) {
  Operands<float> in({2100, 2100, 3});
  for (float& element : in.query.view().select(0, 1).select(0, 1).elements()) element *= 1e8F;
  const Tensor<float> sinks = normal<float>({4}, 5);
  expect_gradients_of_one_process(in, {{2}}, {.mask = causal(), .sinks = sinks});
}

TEST(DistributedBackward, IsTheSameForTheSameRanks) {
  const Operands<float> in({3000, 3000});
  const AttentionOptions options{.mask = causal()};
  const auto forward = attention_with_lse(in.query, in.key, in.value, options);
  const auto once = divided_backward(in, forward, {3}, options);
  const auto again = divided_backward(in, forward, {3}, options);
  EXPECT_TRUE(same_bits(once.query, again.query));
  EXPECT_TRUE(same_bits(once.key, again.key));
  EXPECT_TRUE(same_bits(once.value, again.value));
}

TEST(DistributedBackward, EveryRankThrowsTheSame) {
  const Operands<float> in({2000, 2000});
  const auto forward = attention_with_lse(in.query, in.key, in.value);
  run_thread_ranks(2, [&](Communicator& ranks) {
    const auto own = [&](const Tensor<float>& tensor) {
      return distributed::own_tokens(ranks, FloatView(tensor));
    };
    const Tensor<float> grad_out = own(in.grad_out);
    const FloatView some = grad_out.view().slice(3, 0, ranks.rank() == 0 ? 12 : 11);
    const AttentionOutput<float> own_forward{own(forward.out), own(forward.lse)};
    EXPECT_THAT(
        [&] {
          distributed::attention_backward(ranks, some, own(in.query), own(in.key), own(in.value),
                                          own_forward);
        },
        Refuses("grad_out", "[1, 4, 976, 11]"));
  });
}

}  // namespace
}  // namespace heed
