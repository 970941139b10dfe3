// Draws the attention of tokens as text for a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/inspect/sentence.h"
#include "heed/viz/terminal.h"

namespace heed::cli {

using inspect::SentenceAttention;
using inspect::SentenceSettings;

// Longer sentences are summarised in blocks.
inline constexpr std::int64_t kMaxDrawnTokens = 40;

// Returns the tokens with their numbers below them.
std::string draw_tokens(const inspect::AttendedTokens& attention, const TerminalStyle& style);

// Draws one heatmap for each of `heads`, as many per row as fit, and the scale of the colours. A
// sentence of more than kMaxDrawnTokens tokens gets heatmaps of blocks, and the tokens to which its
// last token attends most.
std::string draw_heads(const inspect::AttendedTokens& attention,
                       const std::vector<std::int64_t>& heads, const TerminalStyle& style);

// Returns the indices of all heads, from 0.
std::vector<std::int64_t> all_heads(const inspect::AttendedTokens& attention);

}  // namespace heed::cli
