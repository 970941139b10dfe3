// The attention of a sentence as a figure.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/inspect/sentence.h"
#include "heed/viz/figure.h"
#include "picture_file.h"

namespace heed::cli {

using inspect::SentenceAttention;
using inspect::SentenceSettings;

// A heatmap for each of `heads`, with the tokens on both axes.
Figure draw_figure(const SentenceAttention& attention, const std::vector<std::int64_t>& heads,
                   const PictureArguments& arguments);

}  // namespace heed::cli
