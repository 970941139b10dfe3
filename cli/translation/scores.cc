#include "translation/scores.h"

#include <fmt/format.h>

namespace heed::cli {

std::string lengths_of(const tasks::LengthScore& group) {
  if (group.min_length == group.max_length) return std::to_string(group.min_length);
  return fmt::format("{} to {}", group.min_length, group.max_length);
}

nlohmann::json to_json(const tasks::TranslationScore& score) {
  nlohmann::json by_length = nlohmann::json::array();
  for (const tasks::LengthScore& group : score.by_length) {
    by_length.push_back({{"min_length", group.min_length},
                         {"max_length", group.max_length},
                         {"count", group.count},
                         {"bleu", group.bleu},
                         {"exact_match", group.exact}});
  }
  return {{"bleu", score.bleu.score},
          {"precisions", score.bleu.precisions},
          {"brevity_penalty", score.bleu.brevity_penalty},
          {"hypothesis_length", score.bleu.hypothesis_length},
          {"reference_length", score.bleu.reference_length},
          {"exact_match", score.exact},
          {"by_length", by_length}};
}

}  // namespace heed::cli
