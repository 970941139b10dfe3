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
#include "train/settings.h"

namespace heed::cli {

struct MasksSettings {
  std::vector<std::string> kinds = attention_kind_names();
  std::vector<std::int64_t> parts = {4, 16};
  std::int64_t seeds = 3;      // 0, 1, …: each draws parameters and batches
  std::int64_t context = 128;  // characters in a training sequence
  std::int64_t timed = 4096;   // tokens whose attention is timed
  // The first tokens, which some kinds always show to every query, hold nothing useful.
  tasks::CopyTask copy = {.length = 8, .symbols = 16, .lead = 8, .gap = 40};
  std::int64_t copy_steps = 400;
  std::int64_t text_steps = 200;
  models::CausalConfig model = {.positions = "rotary"};  // layers, d_model, heads
};

// Throws UsageError when numbers are out of range or do not fit together.
void check(const MasksSettings& settings);

// The operands of the call that is timed: 4 heads of 64 dimensions.
struct TimedOperands {
  explicit TimedOperands(std::int64_t length);
  Tensor<float> query, key, value;
};

// The cost of one attention call, without the projections.
struct AttentionCost {
  double seconds = 0;  // the minimum of several calls
  // What the call takes beside its operands, its result and the mask; empty for linear attention,
  // which has no plan.
  std::optional<std::int64_t> workspace_bytes;
};

struct MasksResult {
  SizedAttention attention;
  AttentionCost cost = {};
  SeedScores copy = {};  // parts of correct symbols
  SeedScores loss = {};  // nats per character
};

struct MasksComparison {
  MasksSettings settings;
  std::int64_t characters = 0;  // of the text
  std::vector<MasksResult> results;
};

// Trains and measures all models, with progress on stderr. Throws std::runtime_error when the text
// is too short, Interrupted when Ctrl-C ended it.
MasksComparison compare_masks(const MasksSettings& settings, std::string_view text);

}  // namespace heed::cli
