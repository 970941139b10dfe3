#include "lessons/tiny_copy.h"

#include "heed/core/random.h"
#include "heed/inspect/layer_text.h"
#include "heed/nn/optimizer.h"

namespace heed::learn {

TinyCopy::TinyCopy(const std::string& positions) {
  models::CausalConfig sizes;
  sizes.vocab_size = task_.symbols + 1;
  sizes.context = task_.sequence_length();
  sizes.layers = 1;
  sizes.d_model = 32;
  sizes.positions = positions;
  set_seed(0);
  model_ = std::make_unique<models::CausalTransformer>(sizes);
  TorchGenerator random(1);
  probe_ = draw_batch(task_, 64, random);
}

std::vector<double> TinyCopy::train(std::int64_t steps, double lr) {
  nn::AdamW<> optimizer(model_->parameters(), lr);
  std::vector<double> losses;
  model_->train();
  for (std::int64_t step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const auto loss = train::token_loss(*model_, draw_batch(task_, 32, default_generator()));
    loss.backward();
    optimizer.step();
    losses.push_back(static_cast<double>(loss.item()));
  }
  return losses;
}

void show_heads(Report& report, const std::string& name, const AttentionDiagnostics& diagnostics) {
  report.say("{}", inspect::table_of(diagnostics));
  for (const Finding& finding : attention_findings(diagnostics)) {
    report.say("  {} {}:", finding.is_problem ? "!" : "-", name_of(finding.kind));
    report.say("      {}", finding.measured);
  }
  report.say("  mean cosine similarity of two heads: {:.3f}", diagnostics.mean_similarity());
  report.record(name, nlohmann::json::parse(inspect::json_of(diagnostics)));
}

}  // namespace heed::learn
