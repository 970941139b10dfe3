// The example of the lesson heads and of its picture.
#pragma once

#include "heed/nn/functional.h"

namespace heed::learn {

// One head of 64 dimensions and eight of 8, on the same randn(1, 8, 64). Three randn(1, 4, 8) are
// drawn between torch.manual_seed(42) and the two layers.
struct OneAndManyHeads {
  OneAndManyHeads();

  static constexpr std::int64_t kEmbedDim = 64;
  static constexpr std::int64_t kNumHeads = 8;
  static constexpr std::int64_t kMeanOf = 4;

  MultiHeadOutput<float> one;
  MultiHeadOutput<float> many;
  Tensor<float> mean;  // [8, 8]: the mean of the weights of the first kMeanOf of the eight heads
};

}  // namespace heed::learn
