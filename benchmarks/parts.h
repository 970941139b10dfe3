// What parts of heed cost.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace heed::cli {

struct Part {
  std::string name;
  double operations = 0;  // per call; 0 where they are not counted
  std::function<void()> call;
};

// Parts that are measured in turn: all are compared with the first.
using PartsInTurn = std::vector<Part>;

// Attention of 8 heads, 2048 tokens and 64 dimensions, and what else changes scores.
PartsInTurn parts_of_attention();
// Statistics of the same queries and keys.
PartsInTurn parts_of_statistics();

}  // namespace heed::cli
