// Draws the attention of tokens as a figure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/inspect/sentence.h"
#include "heed/viz/figure.h"
#include "picture_file.h"

namespace heed::cli {

using inspect::SentenceAttention;
using inspect::SentenceSettings;

// Draws a heatmap for each of `heads`, with the tokens on both axes and `note` below.
Figure draw_figure(const inspect::AttendedTokens& attention, const std::vector<std::int64_t>& heads,
                   const std::string& note, const PictureArguments& arguments);

}  // namespace heed::cli
