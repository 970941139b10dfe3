// What models that differ in their seed alone reach.
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
  // The sample deviation, 0 of one seed.
  double deviation() const {
    if (of_seeds.size() < 2) return 0;
    double squares = 0;
    for (const double score : of_seeds) squares += (score - mean()) * (score - mean());
    return std::sqrt(squares / static_cast<double>(of_seeds.size() - 1));
  }
};

// Of a number that is shown `unit` times as large.
struct ScoreFormat {
  double unit = 1;
  int digits = 3;
};

// The mean, and the deviation of several seeds: "2.10 ± 0.02"; "–" where nothing was measured.
std::string score_cell(const SeedScores& scores, const ScoreFormat& format);

// Rows of a table in Markdown.
std::string table_row(const std::vector<std::string>& cells);
std::string table_head(const std::vector<std::string>& cells);

}  // namespace heed::cli
