#include "lessons/one_and_many.h"

#include "heed/core/random.h"

namespace heed::learn {

OneAndManyHeads::OneAndManyHeads() : mean({8, 8}) {
  TorchGenerator generator(42);
  for (int i = 0; i < 3; ++i) generator.randn({1, 4, 8});
  const auto one_head = attention_init(generator, kEmbedDim, kEmbedDim);
  const auto many_heads = attention_init(generator, kEmbedDim, kEmbedDim);
  const auto x = generator.randn({1, 8, kEmbedDim});
  one = multi_head_attention(x, x, one_head, 1);
  many = multi_head_attention(x, x, many_heads, kNumHeads);
  for (std::int64_t head = 0; head < kMeanOf; ++head) {
    float* out = mean.data();
    for_each_element(many.weights.view().select(0, 0).select(0, head),
                     [&out](float weight) { *out++ += weight / kMeanOf; });
  }
}

}  // namespace heed::learn
