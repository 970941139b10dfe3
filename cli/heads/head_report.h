// The parts of `heed heads`: the texts that it reads, and its report as text, JSON and a figure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/inspect/ablation.h"
#include "heed/inspect/model_heads.h"
#include "heed/models/config.h"
#include "heed/viz/figure.h"

namespace heed::cli {

// The results of `heed heads`.
struct HeadReport {
  std::string model;  // its path
  models::ModelConfig config;
  std::string texts;  // a description of the texts that were read
  inspect::HeadScores scores;
  std::vector<inspect::HeadRole> roles;
  std::string ablated;                                       // the value of --ablate, or empty
  std::optional<inspect::Ablation> ablation = std::nullopt;  // empty where no head has the role
};

// Returns a table for each pattern: its heads, or the head that comes nearest.
std::string text_of(const HeadReport& report);
nlohmann::json to_json(const HeadReport& report);
// Draws a map of layers × heads for each pattern.
Figure figure_of(const HeadReport& report, Theme theme);

// Returns for example "5.3".
std::string to_text(const models::HeadIndex& head);
std::string to_text(const std::vector<models::HeadIndex>& heads);

// Joins paragraphs, which empty lines separate, into at most `count` pieces of at least `bytes`
// bytes; the last may be shorter. Skips paragraphs of white space.
std::vector<std::string> text_pieces(std::string_view text, std::int64_t bytes, std::int64_t count);

}  // namespace heed::cli
