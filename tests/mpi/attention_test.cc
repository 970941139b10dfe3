// Attention of tokens divided among processes, compared with one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "distributed/divided.h"
#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "heed/mpi.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::max_difference;
using testing_support::Operands;
using testing_support::same_bits;

class MpiAttention : public testing::Test {
 protected:
  Tensor<float> own(const Tensor<float>& whole) {
    return distributed::own_tokens(ranks_, FloatView(whole));
  }

  MpiCommunicator ranks_{MPI_COMM_WORLD};
  Operands<float> in_{{5000, 5000}};
};

TEST_F(MpiAttention, HasTheBitsOfOneProcess) {
  for (const Mask& mask : {causal(), sliding_window(700, 0), longformer(64, 3), Mask()}) {
    SCOPED_TRACE(mask.description());
    const AttentionOptions options{.mask = mask};
    const auto expected = attention_with_lse(in_.query, in_.key, in_.value, options);
    const auto found = distributed::attention_with_lse(ranks_, own(in_.query), own(in_.key),
                                                       own(in_.value), options);
    EXPECT_TRUE(same_bits(found.out, own(expected.out)));
    const Tensor<float> again = distributed::gather_tokens(ranks_, FloatView(found.out));
    EXPECT_TRUE(same_bits(again, expected.out));
  }
}

// 30 key heads are divisible by each tested number of ranks.
TEST_F(MpiAttention, HasThemByHeads) {
  const Operands<float> in({1100, 1100, 1, 30});
  const AttentionOptions options{.mask = causal()};
  const distributed::Ranks by_heads(ranks_, distributed::DividedBy::kHeads);
  const auto expected = attention_with_lse(in.query, in.key, in.value, options);
  const auto found =
      distributed::attention_with_lse(by_heads, own(in.query), own(in.key), own(in.value), options);
  EXPECT_TRUE(same_bits(found.out, own(expected.out)));
  EXPECT_TRUE(same_bits(found.lse, own(expected.lse)));
  const auto plain = attention_backward(in.grad_out, in.query, in.key, in.value, expected, options);
  const auto gradients = distributed::attention_backward(
      by_heads, own(in.grad_out), own(in.query), own(in.key), own(in.value), found, options);
  EXPECT_TRUE(same_bits(gradients.query, own(plain.query)));
  EXPECT_TRUE(same_bits(gradients.key, own(plain.key)));
  EXPECT_TRUE(same_bits(gradients.value, own(plain.value)));
}

TEST_F(MpiAttention, HasTheGradientsOfOneProcess) {
  const AttentionOptions options{.mask = causal()};
  const auto forward = attention_with_lse(in_.query, in_.key, in_.value, options);
  const auto expected =
      attention_backward(in_.grad_out, in_.query, in_.key, in_.value, forward, options);
  const AttentionOutput<float> own_forward{own(forward.out), own(forward.lse),
                                           own(forward.lse_low)};
  const auto found =
      distributed::attention_backward(ranks_, own(in_.grad_out), own(in_.query), own(in_.key),
                                      own(in_.value), own_forward, options);
  // Sums of up to 5000 products in another order.
  EXPECT_LE(max_difference(found.query, own(expected.query)), 2e-5);
  EXPECT_LE(max_difference(found.key, own(expected.key)), 2e-5);
  EXPECT_LE(max_difference(found.value, own(expected.value)), 2e-5);
}

TEST_F(MpiAttention, WhatOneRankThrowsAllThrow) {
  Cancellation cancellation;
  if (ranks_.rank() == ranks_.size() - 1) cancellation.request();
  const CancellationScope scope(&cancellation);
  EXPECT_THROW(distributed::attention(ranks_, own(in_.query), own(in_.key), own(in_.value)),
               Cancelled);
  const CancellationScope none(nullptr);
  const Tensor<float> key = own(in_.key);
  const std::int64_t dim = ranks_.rank() == 0 ? 7 : 8;
  EXPECT_THAT(
      [&] {
        distributed::attention(ranks_, own(in_.query), key.view().slice(3, 0, dim), own(in_.value));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("key head_dim is 7 but query head_dim is 8")));
}

}  // namespace
}  // namespace heed
