// The scores of models that differ only in their seed.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace heed::cli {

struct SeedScores {
  std::vector<double> of_seeds = {};

  bool is_measured() const { return !of_seeds.empty(); }
  double mean() const {
    return std::accumulate(of_seeds.begin(), of_seeds.end(), 0.0) /
           static_cast<double>(of_seeds.size());
  }
  // Returns the sample standard deviation; 0 for one seed.
  double deviation() const {
    if (of_seeds.size() < 2) return 0;
    double squares = 0;
    for (const double score : of_seeds) squares += (score - mean()) * (score - mean());
    return std::sqrt(squares / static_cast<double>(of_seeds.size() - 1));
  }
};

// The format of a number that is printed `unit` times as large.
struct ScoreFormat {
  double unit = 1;
  int digits = 3;
};

// Returns the mean and, for several seeds, the deviation: "2.10 ± 0.02"; "–" if nothing was
// measured.
std::string score_cell(const SeedScores& scores, const ScoreFormat& format);

// Return rows of a table in Markdown.
std::string table_row(const std::vector<std::string>& cells);
std::string table_head(const std::vector<std::string>& cells);

}  // namespace heed::cli
