// A model that learns to copy, small enough to train while a reader waits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heed/inspect/layers.h"
#include "heed/models/causal_transformer.h"
#include "heed/tasks/copy_task.h"
#include "heed/train/token_loss.h"
#include "lessons/report.h"

namespace heed::learn {

// One layer of 4 heads and width 32, drawn with seed 0, which learns to repeat 5 of 8 symbols.
class TinyCopy {
 public:
  explicit TinyCopy(const std::string& positions = "sinusoidal");

  // Trains for `steps` steps of AdamW on 32 sequences each; returns the loss of each step.
  std::vector<double> train(std::int64_t steps, double lr);

  // Returns the exact-match score on 64 sequences that training does not draw.
  double exact() { return train::token_score(*model_, probe_).exact_match; }
  inspect::MeasuredLayer measure() {
    return inspect::measure_layers(*model_, probe_.inputs).front();
  }

 private:
  tasks::CopyTask task_{5, 8};
  std::unique_ptr<models::CausalTransformer> model_;
  tasks::TokenBatch probe_;
};

// Prints a table of a layer's heads, their findings in a line each, and their similarity. Records
// them as values()[name].
void show_heads(Report& report, const std::string& name, const AttentionDiagnostics& diagnostics);

}  // namespace heed::learn
