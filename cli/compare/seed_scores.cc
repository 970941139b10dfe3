#include "compare/seed_scores.h"

#include <fmt/format.h>

namespace heed::cli {

std::string score_cell(const SeedScores& scores, const ScoreFormat& format) {
  if (!scores.is_measured()) return "–";
  std::string mean = fmt::format("{:.{}f}", format.unit * scores.mean(), format.digits);
  if (scores.of_seeds.size() < 2) return mean;
  return fmt::format("{} ± {:.{}f}", mean, format.unit * scores.deviation(), format.digits);
}

std::string table_row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += ' ' + cell + " |";
  return text + '\n';
}

std::string table_head(const std::vector<std::string>& cells) {
  return table_row(cells) + table_row(std::vector<std::string>(cells.size(), "---"));
}

}  // namespace heed::cli
