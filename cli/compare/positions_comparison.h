// Models that differ in their positions alone, trained alike and tested beyond the length of their
// training.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compare/seed_scores.h"
#include "heed/models/causal_config.h"
#include "train/settings.h"

namespace heed::cli {

struct PositionsSettings {
  std::vector<std::string> positions = models::position_names();
  std::int64_t seeds = 3;      // 0, 1, …: each draws parameters and batches
  std::int64_t context = 128;  // characters in a training sequence
  std::int64_t length = 20;    // symbols to repeat in training: 1 to this
  std::int64_t text_steps = 200;
  std::int64_t copy_steps = 1500;
  models::CausalConfig model = {};  // layers, d_model, heads

  // The lengths that are measured, the first of them that of training.
  std::vector<std::int64_t> text_lengths() const;
  std::vector<std::int64_t> copy_lengths() const;
};

// Throws UsageError when numbers are out of range or do not fit together.
void check(const PositionsSettings& settings);

// What the models of one kind of positions reach at one length.
struct ScoreAtLength {
  std::int64_t length;
  SeedScores scores;  // none where positions end
};

struct PositionsResult {
  std::string positions;
  std::int64_t text_parameters = 0;
  std::int64_t copy_parameters = 0;
  std::vector<ScoreAtLength> loss;             // nats a character, of the same characters
  std::vector<ScoreAtLength> symbol_accuracy;  // shares
  std::vector<ScoreAtLength> exact_match;
};

struct PositionsComparison {
  PositionsSettings settings;
  std::int64_t characters = 0;  // of the text
  std::int64_t predicted = 0;   // characters whose loss is measured
  std::int64_t sequences = 0;   // that are repeated at each length, by each model
  std::vector<PositionsResult> results;
};

// Trains and measures all of them, with progress on stderr. Throws std::runtime_error when the text
// is too short, Interrupted when Ctrl-C ended it.
PositionsComparison compare_positions(const PositionsSettings& settings, std::string_view text);

}  // namespace heed::cli
