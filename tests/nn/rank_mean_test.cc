#include "heed/nn/rank_mean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/distributed/thread_ranks.h"
#include "heed/nn/ops.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::StrEq;
using testing::ThrowsMessage;
using testing_support::Refuses;
using testing_support::same_bits;

// Returns a leaf with the gradient `grad`.
template <class T>
Variable<T> with_gradient(const Tensor<T>& grad) {
  Variable<T> leaf(Tensor<T>(grad.shape()), true);
  sum(leaf * Variable<T>(to_tensor(grad.view()))).backward();
  return leaf;
}

template <class T>
Tensor<T> drawn(int rank, std::int64_t count) {
  return TorchGenerator(static_cast<std::uint64_t>(rank) + 11).randn<T>({count});
}

// The weight of a rank; some ranks have weight 0.
double weight_of(int rank) { return rank == 1 ? 0 : 1.5 * rank + 1; }

// Returns the mean of the ranks' numbers, in double and in the order of ranks.
template <class T>
Tensor<T> expected_mean(int size, std::int64_t count) {
  double total = 0;
  for (int rank = 0; rank < size; ++rank) total += weight_of(rank);
  Tensor<double> sum({count});
  for (int rank = 0; rank < size; ++rank) {
    const Tensor<T> part = drawn<T>(rank, count);
    for (std::int64_t i = 0; weight_of(rank) > 0 && i < count; ++i) {
      sum(i) += weight_of(rank) / total * static_cast<double>(part(i));
    }
  }
  Tensor<T> mean({count});
  for (std::int64_t i = 0; i < count; ++i) mean(i) = static_cast<T>(sum(i));
  return mean;
}

template <class T>
void expect_means(int size, std::int64_t count) {
  const Tensor<T> expected = expected_mean<T>(size, count);
  run_thread_ranks(size, [&](Communicator& ranks) {
    const Variable<T> never(Tensor<T>({3}), true);
    Variable<T> parameter(Tensor<T>({count}), true);
    const double weight = weight_of(ranks.rank());
    if (weight > 0) parameter = with_gradient(drawn<T>(ranks.rank(), count));
    const BatchMean mean =
        mean_over_ranks<T>(ranks, {never, parameter}, {ranks.rank() + 1.0, weight});
    EXPECT_FALSE(never.has_grad());
    EXPECT_TRUE(same_bits(to_tensor(parameter.grad()), expected)) << size << ' ' << count;
    double total = 0;
    double loss = 0;
    for (int rank = 0; rank < size; ++rank) {
      total += weight_of(rank);
      loss += weight_of(rank) * (rank + 1);
    }
    EXPECT_EQ(mean.weight, total);
    EXPECT_NEAR(mean.loss, loss / total, 1e-12);
    EXPECT_EQ(mean.every_rank_has_part, size == 1);
  });
}

TEST(MeanOverRanks, IsTheMeanInTheOrderOfRanks) {
  for (const int size : {1, 2, 3, 5}) {
    for (const std::int64_t count : {1, 7, 1000}) {
      expect_means<float>(size, count);
      expect_means<double>(size, count);
    }
  }
}

TEST(MeanOverRanks, GradientsOfSeveralBucketsAreAddedUp) {
  for (const int size : {2, 3}) expect_means<float>(size, (std::int64_t{5} << 19) + 3);
}

TEST(MeanOverRanks, AllThrowWhereRanksDoNotFit) {
  run_thread_ranks(3, [](Communicator& ranks) {
    const bool is_other = ranks.rank() == 2;
    const auto leaf = with_gradient(Tensor<float>({is_other ? 4 : 3}));
    EXPECT_THAT(
        [&] { mean_over_ranks<float>(ranks, {leaf}, {}); },
        ThrowsMessage<InvalidArgument>(StrEq("mean_over_ranks: rank 2 has 1 parameters of 4 "
                                             "numbers, but rank 0 1 of 3")));
    EXPECT_THAT(
        [&] {
          mean_over_ranks<float>(ranks, {}, {1, is_other ? -1.0 : 1.0});
        },
        Refuses("weight", "-1"));
    EXPECT_THAT([&] { mean_over_ranks<float>(ranks, {}, {0, 0}); }, Refuses("weight", "0"));
  });
}

}  // namespace
}  // namespace heed::nn
