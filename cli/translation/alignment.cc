#include "translation/alignment.h"

namespace heed::cli {

Tensor<float> mean_of_heads(const Tensor<float>& alignment) {
  Tensor<float> mean({alignment.extent(1), alignment.extent(2)});
  const auto share = 1 / static_cast<float>(alignment.extent(0));
  for (std::int64_t h = 0; h < alignment.extent(0); ++h) {
    const auto of_head = to_tensor(alignment.view().select(0, h));
    float* sum = mean.data();
    for (const float weight : of_head.elements()) *sum++ += share * weight;
  }
  return mean;
}

Figure alignment_figure(const Tensor<float>& weights, const std::vector<std::string>& source,
                        const std::vector<std::string>& target, AttentionFigureOptions options) {
  options.queries = target;
  options.keys = source;
  options.query_title = "written";
  options.key_title = "source";
  return attention_figure(weights, options);
}

}  // namespace heed::cli
