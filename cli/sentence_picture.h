// The attention of tokens as text for a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/inspect/sentence.h"
#include "heed/viz/terminal.h"

namespace heed::cli {

using inspect::SentenceAttention;
using inspect::SentenceSettings;

// Longer sentences are summarised.
inline constexpr std::int64_t kMaxDrawnTokens = 40;

// The tokens with their numbers below them.
std::string draw_tokens(const inspect::AttendedTokens& attention, const TerminalStyle& style);

// One heatmap for each of `heads`, as many next to each other as fit, and the scale of the colours.
// A sentence of more than kMaxDrawnTokens tokens gets heatmaps of blocks and, for its last token,
// the tokens that it attends to most.
std::string draw_heads(const inspect::AttendedTokens& attention,
                       const std::vector<std::int64_t>& heads, const TerminalStyle& style);

// All heads, from 0.
std::vector<std::int64_t> all_heads(const inspect::AttendedTokens& attention);

}  // namespace heed::cli
