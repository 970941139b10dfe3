// Trains models in the same way that differ only in their positions, and tests them beyond the
// training length.
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
  std::int64_t length = 20;    // in training, 1 to this many symbols are repeated
  std::int64_t text_steps = 200;
  std::int64_t copy_steps = 1500;
  models::CausalConfig model = {};  // layers, d_model, heads

  // The lengths that are measured; the first is the training length.
  std::vector<std::int64_t> text_lengths() const;
  std::vector<std::int64_t> copy_lengths() const;
};

// Throws UsageError when numbers are out of range or do not fit together.
void check(const PositionsSettings& settings);

// The scores of the models of one kind of positions at one length.
struct ScoreAtLength {
  std::int64_t length;
  SeedScores scores;  // empty where the model has no positions left
};

struct PositionsResult {
  std::string positions;
  std::int64_t text_parameters = 0;
  std::int64_t copy_parameters = 0;
  std::vector<ScoreAtLength> loss;  // nats per character, on the same characters at every length
  std::vector<ScoreAtLength> symbol_accuracy;  // parts of correct symbols
  std::vector<ScoreAtLength> exact_match;
};

struct PositionsComparison {
  PositionsSettings settings;
  std::int64_t characters = 0;  // of the text
  std::int64_t predicted = 0;   // characters whose loss is measured
  std::int64_t sequences = 0;   // repeated at each length by each model
  std::vector<PositionsResult> results;
};

// Trains and measures all models, with progress on stderr. Throws std::runtime_error when the text
// is too short, Interrupted when Ctrl-C ended it.
PositionsComparison compare_positions(const PositionsSettings& settings, std::string_view text);

}  // namespace heed::cli
