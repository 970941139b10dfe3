// Prepares the alignment of a decoder for figures.
#pragma once

#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/viz/attention_figure.h"

namespace heed::cli {

// Averages alignment [num_heads, tokens, src_len] to [tokens, src_len].
Tensor<float> mean_of_heads(const Tensor<float>& alignment);

// Draws the source on the x axis and the target on the y axis. The labels and titles of the axes in
// `options` are replaced.
Figure alignment_figure(const Tensor<float>& weights, const std::vector<std::string>& source,
                        const std::vector<std::string>& target, AttentionFigureOptions options);

}  // namespace heed::cli
