#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "heed/core/error.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/thread_ranks.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using distributed::TokenDivision;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

TEST(TokenDivision, DealsOutSegmentsBackAndForth) {
  const TokenDivision division(5 * 1024 + 7, 3);
  EXPECT_EQ(division.num_segments(), 6);
  std::vector<int> owners;
  for (std::int64_t j = 0; j < 6; ++j) owners.push_back(division.owner(j));
  EXPECT_THAT(owners, testing::ElementsAre(0, 1, 2, 2, 1, 0));
  EXPECT_EQ(division.segment(0, 1), 5);
  EXPECT_EQ(division.segment(2, 1), 3);
  EXPECT_EQ(division.tokens(5), (RowRange{5120, 5127}));
  EXPECT_EQ(division.first_row(4), 1024);
  EXPECT_EQ(division.num_tokens(0), 1024 + 7);
  EXPECT_EQ(division.num_tokens(1), 2048);
  EXPECT_EQ(division.num_tokens(2), 2048);
  EXPECT_EQ(division.most_tokens(), 2048);
}

TEST(TokenDivision, LosesNoToken) {
  for (const std::int64_t length : {0, 1, 1023, 1024, 1025, 5000}) {
    for (const int size : {1, 2, 7}) {
      const TokenDivision division(length, size);
      std::int64_t sum = 0;
      for (int rank = 0; rank < size; ++rank) {
        sum += division.num_tokens(rank);
        EXPECT_LE(division.num_tokens(rank), division.most_tokens());
      }
      EXPECT_EQ(sum, length);
      for (std::int64_t j = 0; j < division.num_segments(); ++j) {
        EXPECT_EQ(division.segment(division.owner(j), j / size), j);
      }
    }
  }
}

TEST(TokenDivision, RefusesWhatIsNone) {
  EXPECT_THAT([] { TokenDivision(-1, 2); }, Refuses("length", "-1"));
  EXPECT_THAT([] { TokenDivision(1, 0); }, Refuses("size", "0"));
}

TEST(OwnTokens, ComeTogetherAgain) {
  for (const std::int64_t length : {0, 5, 1024, 3333}) {
    const Tensor<float> whole = normal<float>({2, 3, length, 4}, 1);
    for (const int size : {1, 2, 5}) {
      run_thread_ranks(size, [&](Communicator& ranks) {
        const Tensor<float> own =
            distributed::own_tokens(ranks, whole.view().permute({1, 0, 2, 3}));
        const Tensor<float> again = distributed::gather_tokens(ranks, FloatView(own));
        EXPECT_TRUE(same_bits(again, to_tensor(whole.view().permute({1, 0, 2, 3}))));
      });
    }
  }
}

TEST(OwnTokens, AreThoseOfTheirSegments) {
  Tensor<float> whole({1, 1, 2050, 1});
  for (std::int64_t i = 0; i < 2050; ++i) whole.data()[i] = static_cast<float>(i);
  run_thread_ranks(2, [&](Communicator& ranks) {
    const Tensor<float> own = distributed::own_tokens(ranks, FloatView(whole));
    ASSERT_EQ(own.extent(2), ranks.rank() == 0 ? 1024 : 1026);
    EXPECT_EQ(own(0, 0, 0, 0), ranks.rank() == 0 ? 0 : 1024);
    EXPECT_EQ(own(0, 0, own.extent(2) - 1, 0), ranks.rank() == 0 ? 1023 : 2049);
  });
}

TEST(GatherTokens, RefusesWhatDoesNotFit) {
  const Tensor<float> whole = normal<float>({1, 2, 2000, 4}, 1);
  run_thread_ranks(2, [&](Communicator& ranks) {
    const Tensor<float> own = distributed::own_tokens(ranks, FloatView(whole));
    EXPECT_THAT([&] { distributed::gather_tokens(ranks, own.view().slice(2, 0, 900)); },
                Refuses("rank 0", "900"));
    EXPECT_THAT(
        [&] { distributed::gather_tokens(ranks, own.view().slice(1, 0, 1 + ranks.rank())); },
        Refuses("rank 1", "[1, 2, 2000, 4]"));
    EXPECT_THAT(
        [&] { distributed::gather_tokens(ranks, FloatView(own).select(0, 0).select(0, 0)); },
        ThrowsMessage<InvalidArgument>(HasSubstr("expected [batch, heads, length, …]")));
  });
}

}  // namespace
}  // namespace heed
