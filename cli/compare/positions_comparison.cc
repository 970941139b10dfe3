#include "compare/positions_comparison.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "compare/training.h"
#include "heed/core/random.h"
#include "heed/models/causal_config.h"
#include "heed/tasks/copy_task.h"
#include "heed/train/text_loss.h"
#include "heed/train/token_loss.h"
#include "train/settings.h"

namespace heed::cli {

namespace {

constexpr std::int64_t kSymbols = 16;
constexpr std::int64_t kCopiedSequences = 128;
constexpr train::TrainingSettings kTextTraining{.batch = 16};
constexpr train::TrainingSettings kCopyTraining{.batch = 32};

// Each measured length is the training length times one of these factors.
constexpr std::int64_t kTextFactors[] = {1, 2, 4, 8};
constexpr std::int64_t kCopyHalves[] = {2, 3, 4, 5, 6};  // halves of the training length

train::MeasuredBlocks measured_blocks(const PositionsSettings& settings) {
  return {settings.text_lengths().back(), settings.context / 2};
}

models::CausalConfig text_model(const PositionsSettings& settings, const std::string& positions,
                                std::int64_t characters) {
  models::CausalConfig model = settings.model;
  model.vocab_size = characters;
  model.context = settings.context;
  model.positions = positions;
  return model;
}

models::CausalConfig copy_model(const PositionsSettings& settings, const std::string& positions) {
  models::CausalConfig model = settings.model;
  model.vocab_size = kSymbols + 1;
  model.context = 2 * settings.length;
  model.positions = positions;
  return model;
}

std::vector<ScoreAtLength> not_measured(const std::vector<std::int64_t>& lengths) {
  std::vector<ScoreAtLength> scores;
  scores.reserve(lengths.size());
  for (const std::int64_t length : lengths) scores.push_back({length, {}});
  return scores;
}

void learn_text(const PositionsSettings& settings, const train::HeldOutText& text,
                std::uint64_t seed, ComparedTraining& training, PositionsResult& result) {
  set_seed(seed);
  models::CausalTransformer model(text_model(settings, result.positions, text.characters.size()));
  result.text_parameters = model.num_parameters();
  training.train(model, with_steps(kTextTraining, settings.text_steps), [&]() -> train::StepLoss {
    return {train::random_batch_loss(model, text.learned(), kTextTraining.batch, settings.context),
            kTextTraining.batch * settings.context};
  });
  for (ScoreAtLength& at : result.loss) {
    const std::optional<double> loss =
        train::loss_of_blocks(model, text.held_out(), measured_blocks(settings), at.length);
    if (loss) at.scores.of_seeds.push_back(*loss);
  }
  training.say(fmt::format("text, {}, seed {}: loss {:.3f} at {}", result.positions, seed,
                           result.loss.front().scores.of_seeds.back(), settings.context));
}

void learn_to_copy(const PositionsSettings& settings, std::uint64_t seed,
                   ComparedTraining& training, PositionsResult& result) {
  set_seed(seed);
  models::CausalTransformer model(copy_model(settings, result.positions));
  result.copy_parameters = model.num_parameters();
  training.train(model, with_steps(kCopyTraining, settings.copy_steps), [&]() -> train::StepLoss {
    const std::int64_t length = 1 + default_generator().randint(0, settings.length, {1})(0);
    const tasks::CopyTask task{length, kSymbols};
    return {train::token_loss(model, draw_batch(task, kCopyTraining.batch, default_generator())),
            kCopyTraining.batch * task.sequence_length()};
  });
  TorchGenerator random(~seed);
  for (std::size_t i = 0; i < result.symbol_accuracy.size(); ++i) {
    const tasks::CopyTask task{result.symbol_accuracy[i].length, kSymbols};
    const tasks::TokenBatch batch = draw_batch(task, kCopiedSequences, random);
    if (task.sequence_length() > model.max_length()) continue;
    const train::TokenScore score = train::token_score(model, batch);
    result.symbol_accuracy[i].scores.of_seeds.push_back(score.accuracy);
    result.exact_match[i].scores.of_seeds.push_back(score.exact_match);
  }
  training.say(fmt::format("copying, {}, seed {}: {:.1f} % of the symbols at {}", result.positions,
                           seed, 100 * result.symbol_accuracy.front().scores.of_seeds.back(),
                           settings.length));
}

train::HeldOutText checked_text(const PositionsSettings& settings, std::string_view characters) {
  train::HeldOutText text(characters, kHeldOutParts);
  if (measured_blocks(settings).count(text.held_out()) > 0) return text;
  throw std::runtime_error(
      fmt::format("the text has {} characters, of which the last quarter is held out, expected at "
                  "least {}: four times the longest sequence, and four more",
                  text.ids.size(), 4 * (settings.text_lengths().back() + 1)));
}

}  // namespace

std::vector<std::int64_t> PositionsSettings::text_lengths() const {
  std::vector<std::int64_t> lengths;
  for (const std::int64_t factor : kTextFactors) lengths.push_back(factor * context);
  return lengths;
}

std::vector<std::int64_t> PositionsSettings::copy_lengths() const {
  std::vector<std::int64_t> lengths;
  for (const std::int64_t halves : kCopyHalves) lengths.push_back(halves * length / 2);
  return lengths;
}

void check(const PositionsSettings& settings) {
  check_range("--seeds", settings.seeds, 1, 100);
  check_range("--context", settings.context, 2, 256);
  check_range("--length", settings.length, 2, 256);
  check_range("--text-steps", settings.text_steps, 1, 1'000'000);
  check_range("--copy-steps", settings.copy_steps, 1, 1'000'000);
  for (const std::string& positions : settings.positions) {
    check_given(text_model(settings, positions, kSymbols));
  }
}

PositionsComparison compare_positions(const PositionsSettings& settings,
                                      std::string_view characters) {
  const train::HeldOutText text = checked_text(settings, characters);
  const train::MeasuredBlocks blocks = measured_blocks(settings);
  PositionsComparison comparison{settings,
                                 static_cast<std::int64_t>(text.ids.size()),
                                 blocks.measured(text.held_out()) * blocks.block,
                                 kCopiedSequences,
                                 {}};
  for (const std::string& positions : settings.positions) {
    comparison.results.push_back({.positions = positions,
                                  .loss = not_measured(settings.text_lengths()),
                                  .symbol_accuracy = not_measured(settings.copy_lengths()),
                                  .exact_match = not_measured(settings.copy_lengths())});
  }
  const auto models = static_cast<std::int64_t>(settings.positions.size()) * settings.seeds;
  ComparedTraining training(models * (settings.text_steps + settings.copy_steps), "tokens");
  for (std::int64_t seed = 0; seed < settings.seeds; ++seed) {
    for (PositionsResult& result : comparison.results) {
      learn_text(settings, text, static_cast<std::uint64_t>(seed), training, result);
      learn_to_copy(settings, static_cast<std::uint64_t>(seed), training, result);
    }
  }
  return comparison;
}

}  // namespace heed::cli
