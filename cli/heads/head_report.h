// What the heads of a model do, for a reader, for a program and as a picture.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "heed/inspect/ablation.h"
#include "heed/inspect/model_heads.h"
#include "heed/models/config.h"
#include "heed/viz/figure.h"

namespace heed::cli {

// All that `heed heads` found.
struct HeadReport {
  std::string model;  // its path
  models::ModelConfig config;
  std::string texts;  // in words: what was read
  inspect::HeadScores scores;
  std::vector<inspect::HeadRole> roles;
  std::string ablated;                                       // what --ablate named; empty: nothing
  std::optional<inspect::Ablation> ablation = std::nullopt;  // none where no head has the role
};

// A table for each pattern: the heads that it names, or the one that comes nearest.
std::string text_of(const HeadReport& report);
nlohmann::json to_json(const HeadReport& report);
// A map of layers and heads for each pattern.
Figure figure_of(const HeadReport& report, Theme theme);

// "5.3"
std::string to_text(const models::HeadIndex& head);
std::string to_text(const std::vector<models::HeadIndex>& heads);

}  // namespace heed::cli
