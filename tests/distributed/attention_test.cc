#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "distributed/divided.h"
#include "heed/attention/position.h"
#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "support/options.h"
#include "support/tensors.h"

namespace heed { namespace {

using distributed::DividedBy;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::divided_forward;
using testing_support::Division;
using testing_support::kInfinity;
using testing_support::kNaN;
using testing_support::Lengths;
using testing_support::normal;
using testing_support::Operands;
using testing_support::same_bits;

template <class T>
void expect_bits_of_one_process(const Operands<T>& in, const Division& division,
                                const BasicAttentionOptions<testing_support::LseOf<T>>& options) {
  const auto expected = attention_with_lse(in.query, in.key, in.value, options);
  const auto found = divided_forward(in, division, options);
  EXPECT_TRUE(same_bits(found.out, expected.out));
  EXPECT_TRUE(same_bits(found.lse, expected.lse));
  EXPECT_TRUE(same_bits(found.lse_low, expected.lse_low));
  EXPECT_TRUE(same_bits(found.out_low, expected.out_low));
}

TEST(DistributedAttention, HasTheBitsOfOneProcess) {
  const Operands<float> in({3500, 3500});
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    SCOPED_TRACE(size);
    expect_bits_of_one_process(in, {size}, {.mask = causal()});
    expect_bits_of_one_process(in, {size}, {});
  }
}

TEST(DistributedAttention, HasThemByHeads) {
  for (const std::int64_t size : {1, 2, 4, 8}) {
    SCOPED_TRACE(size);
    const Operands<float> in({2500, 1300, 1, 8});
    expect_bits_of_one_process(in, {static_cast<int>(size), DividedBy::kHeads}, {});
    const Operands<float> alike({1025, 1025, 3, size});
    expect_bits_of_one_process(alike, {static_cast<int>(size), DividedBy::kHeads},
                               {.mask = causal()});
  }
}

TEST(DistributedAttention, TakesAnyLengths) {
  for (const Lengths& lengths : {Lengths{0, 0},
                                 {1, 1},
                                 {3, 0},
                                 {0, 3},
                                 {1, 3000},
                                 {1023, 1024},
                                 {1025, 1023},
                                 {2500, 100}}) {
    SCOPED_TRACE(std::to_string(lengths.q_len) + " queries, " + std::to_string(lengths.kv_len));
    const Operands<float> in(lengths);
    expect_bits_of_one_process(in, {3}, {});
    expect_bits_of_one_process(in, {2}, {.mask = causal_bottom_right()});
    expect_bits_of_one_process(in, {2, DividedBy::kHeads}, {.mask = causal_bottom_right()});
  }
}

// Three ranks, divided by tokens, or by heads with two of six each.
class DividedAttention : public testing::TestWithParam<DividedBy> {
 protected:
  static constexpr std::int64_t kKeyHeads = 3;
  static constexpr std::int64_t kHeads = 2 * kKeyHeads;
  const Division division_{3, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(By, DividedAttention,
                         testing::Values(DividedBy::kTokens, DividedBy::kHeads),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST_P(DividedAttention, TakesEveryKindOfMask) {
  constexpr std::int64_t kLength = 2300;
  const Operands<float> in({kLength, kLength, 2, kKeyHeads});
  Tensor<bool> shown({2, 1, kLength, kLength});
  std::int64_t i = 0;
  for (bool& element : shown.elements()) element = i++ * 7919 % 13 < 5;
  Tensor<bool> of_heads({kHeads, 1, kLength});
  for (bool& element : of_heads.elements()) element = i++ * 7919 % 11 < 6;
  const Tensor<float> added = normal<float>({2, 1, kLength, kLength}, 9);
  for (const Mask& mask :
       {sliding_window(200, 0), causal() & documents({0, 700, 1500, kLength}), longformer(64, 3),
        bigbird(), strided(64) & causal(), columns(100), prefix(1100), key_lengths({1500, 3}),
        streaming(4, 100), causal() & key_lengths({0, kLength}), Mask::allow(shown.view()),
        Mask::allow(of_heads.view()) & causal(), Mask::additive(added),
        random_blocks({.count = 2, .block = 64}),
        Mask::tree(std::vector<std::int64_t>(kLength, -1))}) {
    SCOPED_TRACE(mask.description());
    expect_bits_of_one_process(in, division_, {.mask = mask});
  }
}

TEST_P(DividedAttention, PlacesAreThoseInTheWhole) {
  const testing_support::Sizes sizes{.batch = 2,
                                     .num_heads = kHeads,
                                     .num_kv_heads = kKeyHeads,
                                     .q_len = 1100,
                                     .kv_len = 1100,
                                     .head_dim = 8,
                                     .value_dim = 12};
  const Operands<float> in({sizes.q_len, sizes.kv_len, sizes.batch, kKeyHeads});
  std::uint64_t seed = 0;
  for (const auto& chosen : testing_support::alone_and_in_pairs(
           testing_support::options_where(&testing_support::Option::is_option))) {
    SCOPED_TRACE(to_string(chosen));
    const testing_support::DrawnOptions<float> options(sizes, chosen, ++seed);
    expect_bits_of_one_process(in, division_, *options);
  }
  // All queries and keys move together.
  const Tensor<float> slopes = alibi_slopes(kHeads);
  expect_bits_of_one_process(in, division_, {.alibi_slopes = slopes.view(), .query_offset = 100});
}

TEST(DistributedAttention, TakesEveryTypeOfNumber) {
  const Lengths lengths{2100, 2100};
  for (const DividedBy by : {DividedBy::kTokens, DividedBy::kHeads}) {
    expect_bits_of_one_process(Operands<double>(lengths), {2, by}, {.mask = causal()});
    expect_bits_of_one_process(Operands<Float16>(lengths), {2, by}, {.mask = causal()});
    expect_bits_of_one_process(Operands<BFloat16>(lengths), {2, by}, {.mask = causal()});
  }
}

TEST(DistributedAttention, TakesKeysInHalfPrecision) {
  const Operands<float> in({1500, 1500});
  const auto key = testing_support::converted<BFloat16>(in.key);
  const auto value = testing_support::converted<BFloat16>(in.value);
  const Tensor<float> expected = attention(in.query, key, value);
  for (const DividedBy by : {DividedBy::kTokens, DividedBy::kHeads}) {
    run_thread_ranks(2, [&](Communicator& ranks) {
      const Tensor<float> out =
          distributed::attention({ranks, by}, distributed::own_tokens(ranks, FloatView(in.query)),
                                 distributed::own_tokens(ranks, BFloat16View(key)),
                                 distributed::own_tokens(ranks, BFloat16View(value)));
      EXPECT_TRUE(same_bits(out, distributed::own_tokens(ranks, FloatView(expected))));
    });
  }
}

TEST(DistributedAttention, ReadsStridedTensors) {
  const Operands<float> in({1500, 1500});
  const Tensor<float> expected = attention(in.query, in.key, in.value);
  const auto compute = [&](Communicator& ranks, DividedBy by) {
    const auto strided = [&](const Tensor<float>& tensor) {
      const Tensor<float> own = distributed::own_tokens(ranks, FloatView(tensor));
      return to_tensor(own.view().permute({0, 2, 1, 3}));
    };
    const Tensor<float> query = strided(in.query);
    const Tensor<float> key = strided(in.key);
    const Tensor<float> value = strided(in.value);
    const Tensor<float> out = distributed::attention(
        {ranks, by}, query.view().permute({0, 2, 1, 3}), key.view().permute({0, 2, 1, 3}),
        value.view().permute({0, 2, 1, 3}));
    EXPECT_TRUE(same_bits(out, distributed::own_tokens(ranks, FloatView(expected))));
  };
  for (const DividedBy by : {DividedBy::kTokens, DividedBy::kHeads}) {
    run_thread_ranks(2, [&](Communicator& ranks) { compute(ranks, by); });
  }
}

// Rows that need a second pass over their keys: hidden NaN, infinite scores, scores that lose their
// digits.
TEST(DistributedAttention, ComputesRowsThatLookTwice) {
  Operands<float> in({2100, 2100, 3});
  in.value.view()(1, 0, 1500, 3) = kNaN;
  in.key.view()(1, 1, 20, 0) = kInfinity;
  for (float& element : in.query.view().select(0, 2).select(0, 1).elements()) element *= 1e8F;
  for (const int size : {1, 2, 3}) expect_bits_of_one_process(in, {size}, {.mask = causal()});
  expect_bits_of_one_process(in, {2, DividedBy::kHeads}, {.mask = causal()});
}

TEST(DistributedAttention, EveryRankThrowsTheSame) {
  const Operands<float> in({2000, 2000});
  const auto expect = [&](const std::string& text, const auto& attend) {
    SCOPED_TRACE(text);
    std::atomic<int> thrown = 0;
    run_thread_ranks(2, [&](Communicator& ranks) {
      const Tensor<float> query = distributed::own_tokens(ranks, FloatView(in.query));
      const Tensor<float> key = distributed::own_tokens(ranks, FloatView(in.key));
      const Tensor<float> value = distributed::own_tokens(ranks, FloatView(in.value));
      EXPECT_THAT([&] { attend(ranks, query, key, value); },
                  ThrowsMessage<InvalidArgument>(HasSubstr(text)));
      ++thrown;
    });
    EXPECT_EQ(thrown, 2);
  };
  using Part = const Tensor<float>&;
  expect("rank 1: distributed::attention: key head_dim is 7",
         [](Communicator& ranks, Part query, Part key, Part value) {
           const FloatView narrow = key.view().slice(3, 0, ranks.rank() == 1 ? 7 : 8);
           distributed::attention(ranks, query, narrow, value);
         });
  expect(
      "rank 1 has query [1, 4, 2000, 8] float32, key [1, 2, 2000, 8] float32, value [1, 2, 2000, "
      "12] "
      "float32, mask none, scores none, scale 0.35355338, divided by automatic, but rank 0 has "
      "query",
      [](Communicator& ranks, Part query, Part key, Part value) {
        distributed::attention(ranks, query, key, value,
                               {.mask = ranks.rank() == 0 ? causal() : Mask()});
      });
  expect("scale 0.35355338, exact, divided by automatic, but rank 0 has query",
         [](Communicator& ranks, Part query, Part key, Part value) {
           distributed::attention(
               ranks, query, key, value,
               {.precision = ranks.rank() == 0 ? Precision::kFast : Precision::kExact});
         });
  expect("rank 0 has 1000 of 1976 queries, expected 1024",
         [](Communicator& ranks, Part query, Part key, Part value) {
           const std::int64_t own = ranks.rank() == 0 ? 1000 : 976;
           distributed::attention(ranks, query.view().slice(2, 0, own), key, value);
         });
  expect("distributed::attention: rank 1 has no lse and no lse_low, but rank 0 has lse and lse_low",
         [](Communicator& ranks, Part query, Part key, Part value) {
           const distributed::Ranks by_heads(ranks, DividedBy::kHeads);
           if (ranks.rank() == 0) {
             distributed::attention_with_lse(by_heads, query, key, value);
           } else {
             distributed::attention(by_heads, query, key, value);
           }
         });
  expect("num_kv_heads is 1, expected a multiple of 2, the number of ranks, to divide heads",
         [](Communicator& ranks, Part query, Part key, Part value) {
           distributed::attention({ranks, DividedBy::kHeads}, query, key.view().slice(1, 0, 1),
                                  value.view().slice(1, 0, 1));
         });
  expect("rank 0: distributed::attention: causal",
         [](Communicator& ranks, Part query, Part key, Part value) {
           distributed::attention(
               ranks, query, key.view().slice(2, 0, ranks.rank() == 0 ? 1024 : 0),
               value.view().slice(2, 0, ranks.rank() == 0 ? 1024 : 0), {.mask = causal()});
         });
}

TEST(DistributedAttention, AnExceptionOnOneRankReachesAll) {
  const Operands<float> in({4000, 4000, 1, 3});
  std::atomic<int> thrown = 0;
  const auto compute = [&](Communicator& ranks, DividedBy by) {
    Cancellation cancellation;
    if (ranks.rank() == 2) cancellation.request();
    const Tensor<float> query = distributed::own_tokens(ranks, FloatView(in.query));
    const Tensor<float> key = distributed::own_tokens(ranks, FloatView(in.key));
    const Tensor<float> value = distributed::own_tokens(ranks, FloatView(in.value));
    const CancellationScope scope(&cancellation);
    EXPECT_THAT(
        [&] {
          distributed::attention({ranks, by}, query, key, value, {.mask = causal()});
        },
        ThrowsMessage<Cancelled>(HasSubstr("rank 2: ")));
    ++thrown;
  };
  for (const DividedBy by : {DividedBy::kTokens, DividedBy::kHeads}) {
    run_thread_ranks(3, [&](Communicator& ranks) { compute(ranks, by); });
  }
  EXPECT_EQ(thrown, 6);
}

TEST(DistributedAttention, SaysWhatNoKernelCanDivide) {
  const Tensor<float> wide({1, 1, 1, 70000});
  run_thread_ranks(1, [&](Communicator& ranks) {
    EXPECT_THAT(
        [&] { distributed::attention(ranks, wide, wide, wide); },
        ThrowsMessage<InvalidArgument>(HasSubstr(
            "distributed::attention: kernels take a head_dim and value_dim up to 65536, and "
            "plain loops do not divide attention")));
  });
}

}  // namespace
}  // namespace heed
