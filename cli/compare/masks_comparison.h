// Trains models in the same way that differ only in which earlier tokens they see.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/attention_kinds.h"
#include "compare/seed_scores.h"
#include "heed/tasks/copy_task.h"
#include "heed/tasks/recall_task.h"
#include "train/settings.h"

namespace heed::cli {

// The task of the table of windows and layers: information has to travel 16 positions.
constexpr tasks::CopyTask kReachCopy{.length = 4, .symbols = 16, .gap = 12};
constexpr std::int64_t kReachWindows[] = {2, 4, 8, 16};
constexpr std::int64_t kReachLayers[] = {1, 2, 4};

struct MasksSettings {
  std::vector<std::string> kinds = attention_kind_names();
  std::vector<std::int64_t> parts = {4, 16};
  std::int64_t seeds = 3;      // 0, 1, …: each draws parameters and batches
  std::int64_t context = 128;  // characters in a training sequence
  std::int64_t timed = 4096;   // tokens whose attention is timed
  // The first tokens, which some kinds always show to every query, hold nothing useful in both
  // tasks.
  tasks::RecallTask recall = {.pairs = 16, .questions = 16, .keys = 16, .values = 8, .lead = 8};
  tasks::CopyTask copy = {.length = 8, .symbols = 16, .lead = 8, .gap = 40};
  std::int64_t recall_steps = 400;
  std::int64_t copy_steps = 400;
  std::int64_t text_steps = 200;
  std::int64_t reach_steps = 400;
  models::CausalConfig model = {.positions = "rotary"};  // layers, d_model, heads
};

// Throws UsageError when numbers are out of range or do not fit together.
void check(const MasksSettings& settings);

// The cost of one attention call, without the projections.
struct AttentionCost {
  double seconds = 0;      // the minimum of several calls
  std::int64_t bytes = 0;  // peak heap bytes besides query, key, value and result
};

struct MasksResult {
  SizedAttention attention;
  AttentionCost cost = {};
  SeedScores recall = {};  // parts of correct values
  SeedScores copy = {};    // parts of correct symbols
  SeedScores loss = {};    // nats per character
};

// The result of a sliding window in a model of `layers` layers, on kReachCopy.
struct ReachResult {
  std::int64_t window;
  std::int64_t layers;
  SeedScores copy = {};
};

struct MasksComparison {
  MasksSettings settings;
  std::int64_t characters = 0;  // of the text
  std::vector<MasksResult> results;
  std::vector<ReachResult> reach;  // the first seed only
};

// Trains and measures all models, with progress on stderr. Throws std::runtime_error when the text
// is too short, Interrupted when Ctrl-C ended it.
MasksComparison compare_masks(const MasksSettings& settings, std::string_view text);

}  // namespace heed::cli
