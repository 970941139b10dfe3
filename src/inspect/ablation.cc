// Switches heads off and measures the effect on the loss.
#include "heed/inspect/ablation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "inspect/model_texts.h"
#include "models/graph.h"

namespace heed { inline namespace v0 { namespace inspect {

namespace {

using Heads = std::vector<models::HeadIndex>;

Heads other_heads(const models::ModelConfig& config, const Heads& heads) {
  Heads others;
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (std::int64_t head = 0; head < config.num_heads; ++head) {
      const models::HeadIndex index{layer, head};
      if (std::find(heads.begin(), heads.end(), index) == heads.end()) others.push_back(index);
    }
  }
  return others;
}

void check_heads(const models::ModelConfig& config, const Heads& heads) {
  if (heads.empty()) throw InvalidArgument("ablate_heads: no head is named, expected one at least");
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const auto [layer, head] = heads[i];
    if (layer < 0 || layer >= config.num_layers || head < 0 || head >= config.num_heads) {
      throw InvalidArgument(
          fmt::format("ablate_heads: there is no head {}.{}, expected layers 0 to {} and heads 0 "
                      "to {}",
                      layer, head, config.num_layers - 1, config.num_heads - 1));
    }
    if (i > 0 && heads[i] == heads[i - 1]) {
      throw InvalidArgument(fmt::format("ablate_heads: head {}.{} is named twice", layer, head));
    }
  }
}

Heads draw(const Heads& others, std::size_t count, TorchGenerator& random) {
  const Tensor<std::int64_t> order = random.randperm(static_cast<std::int64_t>(others.size()));
  Heads heads;
  for (std::size_t i = 0; i < count; ++i) {
    heads.push_back(others[static_cast<std::size_t>(order(static_cast<std::int64_t>(i)))]);
  }
  std::sort(heads.begin(), heads.end());
  return heads;
}

// A mean over tokens: the sum and the number of tokens.
struct Mean {
  double sum = 0;
  std::int64_t count = 0;

  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

// Adds the losses of the tokens from `first` on, which is above 0.
void add_losses(const models::Model& model, const ModelText& text, FloatView hidden,
                std::int64_t first, Mean& mean) {
  mean.sum += models::sum_of_losses(model, hidden, text.tokens.ids, first);
  mean.count += std::max<std::int64_t>(text.tokens.length() - first, 0);
}

double cosine(FloatView a, FloatView b) {
  double product = 0;
  double squares_of_a = 0;
  double squares_of_b = 0;
  for (std::int64_t i = 0; i < a.extent(0); ++i) {
    const auto x = static_cast<double>(a(i));
    const auto y = static_cast<double>(b(i));
    product += x * y;
    squares_of_a += x * x;
    squares_of_b += y * y;
  }
  const double squares = squares_of_a * squares_of_b;
  return squares == 0 ? 0 : product / std::sqrt(squares);
}

class Experiment {
 public:
  Experiment(const models::Model& model, const HeadScores& scores)
      : model_(model),
        scores_(scores),
        has_losses_(model.config().is_causal() && model.has_head()) {
    for (const ModelText& text : scores.text.texts) {
      hidden_.push_back(model.forward(inputs_of(text)));
    }
  }

  bool has_losses() const { return has_losses_; }

  AblationOutcome without(Heads heads) const {
    models::ForwardOptions options;
    options.switched_off = heads;
    AblationOutcome outcome{.heads = std::move(heads)};
    Mean text_loss;
    Mean cosines;
    for (std::size_t i = 0; i < hidden_.size(); ++i) {
      const ModelText& text = scores_.text.texts[i];
      const Tensor<float> hidden = model_.forward(inputs_of(text), options);
      for (std::int64_t t = 0; t < hidden.extent(0); ++t) {
        cosines.add(cosine(hidden_[i].view().select(0, t), hidden.view().select(0, t)));
      }
      if (has_losses_) add_losses(model_, text, hidden, 1, text_loss);
    }
    outcome.cosine = cosines.value();
    if (!has_losses_) return outcome;
    outcome.text_loss = text_loss.value();
    Mean repeated_loss;
    for (const ModelText& text : scores_.repeated.texts) {
      add_losses(model_, text, model_.forward(inputs_of(text), options), text.first_repeated,
                 repeated_loss);
    }
    outcome.repeated_loss = repeated_loss.value();
    return outcome;
  }

 private:
  const models::Model& model_;
  const HeadScores& scores_;
  bool has_losses_;
  std::vector<Tensor<float>> hidden_;  // with all heads
};

}  // namespace

Ablation::Spread Ablation::spread(double AblationOutcome::*number) const {
  const auto count = static_cast<double>(random.size());
  Spread spread;
  if (random.empty()) return spread;
  for (const AblationOutcome& outcome : random) spread.mean += outcome.*number / count;
  if (random.size() < 2) return spread;
  double squares = 0;
  for (const AblationOutcome& outcome : random) {
    squares += (outcome.*number - spread.mean) * (outcome.*number - spread.mean);
  }
  spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

Ablation ablate_heads(const models::Model& model, const HeadScores& scores, Heads heads,
                      const AblationOptions& options) {
  std::sort(heads.begin(), heads.end());
  check_heads(model.config(), heads);
  if (options.draws < 0) {
    throw InvalidArgument(
        fmt::format("ablate_heads: draws is {}, expected at least 0", options.draws));
  }
  const Heads others = other_heads(model.config(), heads);
  if (options.draws > 0 && others.size() < heads.size()) {
    throw InvalidArgument(
        fmt::format("ablate_heads: {} heads leave {} others, expected as many to compare with",
                    heads.size(), others.size()));
  }
  const Experiment experiment(model, scores);
  std::int64_t done = 0;
  const auto without = [&](Heads off) {
    AblationOutcome outcome = experiment.without(std::move(off));
    if (options.progress) options.progress(++done, options.draws + 2);
    return outcome;
  };
  Ablation ablation;
  ablation.has_losses = experiment.has_losses();
  const std::size_t count = heads.size();
  ablation.all = without({});
  ablation.chosen = without(std::move(heads));
  TorchGenerator random(options.seed);
  for (std::int64_t i = 0; i < options.draws; ++i) {
    ablation.random.push_back(without(draw(others, count, random)));
  }
  return ablation;
}

}}}  // namespace heed::v0::inspect
