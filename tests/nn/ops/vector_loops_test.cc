// The loops of the instruction set in use give the bits of those compiled for this file's target.
#include "nn/ops/vector_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "heed/core/random.h"
#include "nn/ops/loop_bodies.h"

namespace heed::nn { namespace {

constexpr std::int64_t kCount = 517;  // no multiple of any vector

std::vector<float> drawn(std::uint64_t seed, std::int64_t count = kCount) {
  const auto tensor = TorchGenerator(seed).randn({count});
  return {tensor.elements().begin(), tensor.elements().end()};
}

TEST(VectorLoops, OfRows) {
  const auto x = drawn(1);
  const auto& loops = vector_loops<float>();
  EXPECT_EQ(loops.largest(x.data(), kCount), *std::max_element(x.begin(), x.end()));
  EXPECT_EQ(loops.sum_of_squares(x.data(), kCount), loop_bodies::sum_of_squares(x.data(), kCount));
  std::vector<float> found(x.size());
  std::vector<float> expected(x.size());
  EXPECT_EQ(loops.exp_and_sum(x.data(), 3, kCount, found.data()),
            loop_bodies::exp_and_sum<float>(x.data(), 3, kCount, expected.data()));
  EXPECT_EQ(found, expected);
  EXPECT_NEAR(found[5], std::exp(x[5] - 3), 1e-6);
}

TEST(VectorLoops, OfAdam) {
  const AdamFactors<float> factors{0.99F, 0.1F, 0.999F, 0.001F, 0.01F, 0.03F, 1e-8F};
  const auto grad = drawn(1);
  const auto run = [&](const auto& adam) {
    std::vector<std::vector<float>> of(3, drawn(2));
    for (float& square : of[2]) square *= square;
    adam(factors, AdamRange<float>{of[0].data(), grad.data(), of[1].data(), of[2].data(), kCount});
    return of;
  };
  EXPECT_EQ(run(vector_loops<float>().adam), run(loop_bodies::adam<float>));
}

TEST(VectorLoops, OfLstm) {
  const auto forward = [](const auto& advance) {
    std::vector<std::vector<float>> of{drawn(1, 4 * kCount), drawn(2), drawn(3)};
    advance(of[0].data(), of[1].data(), of[2].data(), kCount);
    return of;
  };
  const auto states = forward(loop_bodies::lstm_advance<float>);
  EXPECT_EQ(forward(vector_loops<float>().lstm_advance), states);
  const auto before = drawn(2);
  const auto grad_hidden = drawn(4);
  const auto backward = [&](const auto& retreat) {
    std::vector<std::vector<float>> of{drawn(5), drawn(6, 4 * kCount)};
    retreat(LstmStep<float>{states[0].data(), states[1].data(), before.data(), kCount},
            grad_hidden.data(), of[0].data(), of[1].data());
    return of;
  };
  EXPECT_EQ(backward(vector_loops<float>().lstm_retreat),
            backward(loop_bodies::lstm_retreat<float>));
}

}  // namespace
}  // namespace heed::nn
