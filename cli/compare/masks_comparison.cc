#include "compare/masks_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <stdexcept>

#include "bench/heap.h"
#include "compare/training.h"
#include "heed/core/random.h"
#include "heed/train/text_loss.h"
#include "heed/train/token_loss.h"
#include "train/settings.h"

namespace heed::cli {

namespace {

constexpr std::int64_t kMeasuredSequences = 256;
constexpr train::TrainingSettings kTaskTraining{.batch = 32};
constexpr train::TrainingSettings kReadTraining{.batch = 16};

// The shape of the timed calls.
constexpr std::int64_t kTimedHeads = 4;
constexpr std::int64_t kTimedHeadDim = 64;
constexpr int kTimedCalls = 5;

AttentionCost cost_of(const models::AttentionKind& kind, std::int64_t length) {
  TorchGenerator random(0);
  const Shape shape{1, kTimedHeads, length, kTimedHeadDim};
  const Tensor<float> query = random.randn(shape);
  const Tensor<float> key = random.randn(shape);
  const Tensor<float> value = random.randn(shape);
  const auto call = [&] { return attend_once(kind, query, key, value); };
  AttentionCost cost{.seconds = 0, .bytes = measure_extra_bytes(call)};
  for (int i = 0; i < kTimedCalls; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    cost.seconds = i == 0 ? time.count() : std::min(cost.seconds, time.count());
  }
  return cost;
}

models::CausalConfig task_model(models::CausalConfig model, std::int64_t vocab_size,
                                std::int64_t length) {
  model.vocab_size = vocab_size;
  model.context = length;
  return model;
}

// Trains a model on a task and returns the part of correct predictions on new sequences.
template <class Task>
double learn_task(const Task& task, models::CausalTransformer& model, std::int64_t steps,
                  ComparedTraining& training) {
  training.train(model, with_steps(kTaskTraining, steps), [&]() -> train::StepLoss {
    return {train::token_loss(model, draw_batch(task, kTaskTraining.batch, default_generator())),
            kTaskTraining.batch * task.sequence_length()};
  });
  TorchGenerator random(~std::uint64_t{0});
  return train::token_score(model, draw_batch(task, kMeasuredSequences, random)).accuracy;
}

template <class Task>
double learn_task(const MasksSettings& settings, const Task& task, const SizedAttention& attention,
                  std::int64_t steps, ComparedTraining& training) {
  const std::int64_t length = task.sequence_length();
  models::CausalTransformer model(task_model(settings.model, task.vocab_size(), length),
                                  attention.at(length));
  return learn_task(task, model, steps, training);
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
  result.recall.of_seeds.push_back(
      learn_task(settings, settings.recall, result.attention, settings.recall_steps, training));
  set_seed(seed);
  result.copy.of_seeds.push_back(
      learn_task(settings, settings.copy, result.attention, settings.copy_steps, training));
  set_seed(seed);
  result.loss.of_seeds.push_back(
      learn_text(settings, text, result.attention.at(settings.context), training));
  training.say(fmt::format("{}, seed {}: recall {:.1f} %, copying {:.1f} %, text {:.3f}",
                           result.attention.label(), seed, 100 * result.recall.of_seeds.back(),
                           100 * result.copy.of_seeds.back(), result.loss.of_seeds.back()));
}

void learn_reach(const MasksSettings& settings, ComparedTraining& training, ReachResult& result) {
  set_seed(0);
  models::CausalConfig sizes =
      task_model(settings.model, kReachCopy.vocab_size(), kReachCopy.sequence_length());
  sizes.layers = result.layers;
  models::CausalTransformer model(sizes, {.mask = sliding_window(result.window, 0)});
  result.copy.of_seeds.push_back(learn_task(kReachCopy, model, settings.reach_steps, training));
  training.say(fmt::format("windows of {}, layers {}: copying {:.1f} %", result.window,
                           result.layers, 100 * result.copy.mean()));
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
  return models * (settings.recall_steps + settings.copy_steps + settings.text_steps) +
         static_cast<std::int64_t>(comparison.reach.size()) * settings.reach_steps;
}

}  // namespace

void check(const MasksSettings& settings) {
  check_range("--seeds", settings.seeds, 1, 100);
  check_range("--context", settings.context, 2, 2048);
  check_range("--timed", settings.timed, 1, 65536);
  for (const std::int64_t parts : settings.parts) check_range("--parts", parts, 2, 32);
  check_range("--recall-steps", settings.recall_steps, 1, 1'000'000);
  check_range("--copy-steps", settings.copy_steps, 1, 1'000'000);
  check_range("--text-steps", settings.text_steps, 1, 1'000'000);
  check_range("--reach-steps", settings.reach_steps, 1, 1'000'000);
  check_range("--pairs", settings.recall.pairs, 1, 256);
  check_range("--questions", settings.recall.questions, 1, settings.recall.pairs);
  check_range("--keys", settings.recall.keys, settings.recall.pairs, 256);
  check_range("--values", settings.recall.values, 1, 256);
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
      task_model(settings.model, settings.recall.vocab_size(), settings.recall.sequence_length()));
  check_given(
      task_model(settings.model, settings.copy.vocab_size(), settings.copy.sequence_length()));
}

MasksComparison compare_masks(const MasksSettings& settings, std::string_view characters) {
  const train::HeldOutText text = checked_text(settings, characters);
  MasksComparison comparison{settings, static_cast<std::int64_t>(text.ids.size()), {}, {}};
  for (const SizedAttention& attention : sized_attentions(settings.kinds, settings.parts)) {
    comparison.results.push_back(
        {.attention = attention, .cost = cost_of(attention.at(settings.timed), settings.timed)});
  }
  for (const std::int64_t window : kReachWindows) {
    for (const std::int64_t layers : kReachLayers) comparison.reach.push_back({window, layers, {}});
  }
  ComparedTraining training(steps_of(settings, comparison), "tokens");
  for (std::int64_t seed = 0; seed < settings.seeds; ++seed) {
    for (MasksResult& result : comparison.results) {
      learn_all(settings, text, static_cast<std::uint64_t>(seed), training, result);
    }
  }
  for (ReachResult& result : comparison.reach) learn_reach(settings, training, result);
  return comparison;
}

}  // namespace heed::cli
