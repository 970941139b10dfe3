#include "compare/masks_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "bench/measurement.h"
#include "bench/statistics.h"
#include "compare/training.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"
#include "heed/train/text_loss.h"
#include "train/settings.h"

namespace heed::cli {

namespace {

constexpr train::TrainingSettings kReadTraining{.batch = 16};

constexpr int kTimedCalls = 5;

AttentionCost cost_of(const models::AttentionKind& kind, std::int64_t length) {
  const TimedOperands in(length);
  const auto call = [&] { attend_once(kind, in.query, in.key, in.value); };
  const FunctionRef<void()> timed = call;
  const auto made = time_in_turn(
      {.threads = num_threads(), .repetitions = kTimedCalls, .seconds_per_repetition = 0},
      {&timed, 1}, [](int /*repetition*/) {});
  return {summarize(made.front().seconds).best, workspace_bytes(kind, in.query, in.key)};
}

double learn_text(const MasksSettings& settings, const train::HeldOutText& text,
                  const models::AttentionKind& kind, ComparedTraining& training) {
  models::CausalTransformer model(
      task_model(settings.model, text.characters.size(), settings.context), kind);
  training.train(model, with_steps(kReadTraining, settings.text_steps), [&]() -> train::StepLoss {
    return {train::random_batch_loss(model, text.learned(), kReadTraining.batch, settings.context),
            kReadTraining.batch * settings.context};
  });
  return train::loss_over(model, text.held_out(), settings.context)->mean;
}

void learn_all(const MasksSettings& settings, const train::HeldOutText& text, std::uint64_t seed,
               ComparedTraining& training, MasksResult& result) {
  set_seed(seed);
  result.copy.of_seeds.push_back(
      learn_task(settings.model, settings.copy, result.attention, settings.copy_steps, training));
  set_seed(seed);
  result.loss.of_seeds.push_back(
      learn_text(settings, text, result.attention.at(settings.context), training));
  training.say(fmt::format("{}, seed {}: copying {:.1f} %, text {:.3f}", result.attention.label(),
                           seed, 100 * result.copy.of_seeds.back(), result.loss.of_seeds.back()));
}

train::HeldOutText checked_text(const MasksSettings& settings, std::string_view characters) {
  train::HeldOutText text(characters, kHeldOutParts);
  if (static_cast<std::int64_t>(text.held_out().size()) > settings.context) return text;
  throw std::runtime_error(
      fmt::format("the text has {} characters, of which the last quarter is held out, expected at "
                  "least {}: four times a sequence, and four more",
                  text.ids.size(), 4 * (settings.context + 1)));
}

std::int64_t steps_of(const MasksSettings& settings, const MasksComparison& comparison) {
  const auto models = static_cast<std::int64_t>(comparison.results.size()) * settings.seeds;
  return models * (settings.copy_steps + settings.text_steps);
}

}  // namespace

TimedOperands::TimedOperands(std::int64_t length) {
  TorchGenerator random(0);
  const Shape shape{1, 4, length, 64};
  query = random.randn(shape);
  key = random.randn(shape);
  value = random.randn(shape);
}

void check(const MasksSettings& settings) {
  check_range("--seeds", settings.seeds, 1, 100);
  check_range("--context", settings.context, 2, 2048);
  check_range("--timed", settings.timed, 1, 65536);
  for (const std::int64_t parts : settings.parts) check_range("--parts", parts, 2, 32);
  check_range("--copy-steps", settings.copy_steps, 1, 1'000'000);
  check_range("--text-steps", settings.text_steps, 1, 1'000'000);
  const std::string& positions = settings.model.positions;
  const bool changes_scores =
      positions == "alibi" || positions == "t5" || positions == "shaw" || positions == "clip";
  const auto& kinds = settings.kinds;
  if (changes_scores && std::find(kinds.begin(), kinds.end(), "linear") != kinds.end()) {
    throw UsageError(
        fmt::format("--positions is '{}', which linear attention cannot have: it has "
                    "no scores; leave linear out of --kinds",
                    positions));
  }
  check_range("--gap", settings.copy.gap, 0, 1000);
  check_given(
      task_model(settings.model, settings.copy.vocab_size(), settings.copy.sequence_length()));
}

MasksComparison compare_masks(const MasksSettings& settings, std::string_view characters) {
  const train::HeldOutText text = checked_text(settings, characters);
  MasksComparison comparison{settings, static_cast<std::int64_t>(text.ids.size()), {}};
  for (const SizedAttention& attention : sized_attentions(settings.kinds, settings.parts)) {
    comparison.results.push_back(
        {.attention = attention, .cost = cost_of(attention.at(settings.timed), settings.timed)});
  }
  ComparedTraining training(steps_of(settings, comparison), "tokens");
  for (std::int64_t seed = 0; seed < settings.seeds; ++seed) {
    for (MasksResult& result : comparison.results) {
      learn_all(settings, text, static_cast<std::uint64_t>(seed), training, result);
    }
  }
  return comparison;
}

}  // namespace heed::cli
