// What a decoder looked at, ready to be shown.
#pragma once

#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/viz/attention_figure.h"

namespace heed::cli {

// alignment [num_heads, tokens, src_len] as [tokens, src_len].
Tensor<float> mean_of_heads(const Tensor<float>& alignment);

// The source across, what was produced down. `options` say all but labels and titles of the axes.
Figure alignment_figure(const Tensor<float>& weights, const std::vector<std::string>& source,
                        const std::vector<std::string>& target, AttentionFigureOptions options);

}  // namespace heed::cli
