// A model that learns to copy, small enough to be trained while a reader waits.
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

// One layer of 4 heads, width 32, drawn from seed 0, which is to repeat 5 of 8 symbols.
class TinyCopy {
 public:
  explicit TinyCopy(const std::string& positions = "sinusoidal");

  // So many steps of AdamW on 32 sequences each; returns the loss of each.
  std::vector<double> train(std::int64_t steps, double lr);

  // Over 64 sequences that training never draws again.
  double exact() { return train::token_score(*model_, probe_).exact_match; }
  inspect::MeasuredLayer measure() {
    return inspect::measure_layers(*model_, probe_.inputs).front();
  }

 private:
  tasks::CopyTask task_{5, 8};
  std::unique_ptr<models::CausalTransformer> model_;
  tasks::TokenBatch probe_;
};

// The table of a layer's heads, its findings in a line each, and the similarity; recorded as
// values()[name].
void show_heads(Report& report, const std::string& name, const AttentionDiagnostics& diagnostics);

}  // namespace heed::learn
