#include "lessons/scratch.h"

#include "heed/core/random.h"
#include "heed/nn/functional.h"

namespace heed::learn {

namespace {

constexpr std::uint64_t kSeed = 42;
constexpr std::int64_t kTokenDim = 4;
constexpr std::int64_t kHeadDim = 2;
constexpr double kDeviation = 0.5;

Tensor<double> draw_weight(NumpyRandomState& random) {
  Tensor<double> weight = random.randn({kTokenDim, kHeadDim});
  for (double& element : weight.elements()) element *= kDeviation;
  return weight;
}

Tensor<double> project(const Tensor<double>& x, const Tensor<double>& weight) {
  const Tensor<double> transposed = to_tensor(weight.view().permute({1, 0}));
  return linear(x, {transposed, {}}).reshaped({1, 1, x.extent(0), kHeadDim});
}

}  // namespace

ScratchExample::ScratchExample(std::int64_t seq_len) {
  NumpyRandomState random(kSeed);
  x = random.randn({seq_len, kTokenDim});
  query_weight = draw_weight(random);
  key_weight = draw_weight(random);
  value_weight = draw_weight(random);
  query = project(x, query_weight);
  key = project(x, key_weight);
  value = project(x, value_weight);
}

}  // namespace heed::learn
