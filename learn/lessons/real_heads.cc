// The lesson real-heads: what the heads of a published model do.
#include "lessons/real_heads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "lessons/drawing.h"
#include "lessons/lesson.h"

namespace heed::learn {

namespace real_heads_lesson {

FloatView weights_of_head(const inspect::ModelReading& reading, models::HeadIndex head) {
  const Tensor<float>& weights = reading.layers[static_cast<std::size_t>(head.layer)].weights;
  return weights.view().select(0, head.head);
}

namespace {

constexpr const char* kSentence = "The cat sat on the mat.";
constexpr const char* kDrawnSentence = "The cat sat, for the cat was tired.";

// The texts on which heads are scored. They are short because a model may have few positions.
constexpr const char* kTexts[] = {
    "The old man walked slowly to the harbour, sat down on a bench, and watched the boats. A boy "
    "asked him where the boats came from. \"From the other side of the sea,\" said the old man.",
    "In spring the river rises, and the water covers the fields near the bridge. Farmers who live "
    "there move their cows to the hills; when the water falls, they bring the cows back.",
    "The committee met on Monday, discussed the new budget for three hours, and decided nothing. "
    "On Tuesday it met again. This time, the members agreed: the library stays open.",
    "She opened the letter, read it twice, and laughed. It was a letter from her sister, who had "
    "lost her keys, her phone, and her way, and had found all three in the same cafe."};

// Returns row q of the weights, computed from the vectors by plain loops in double.
std::vector<double> row_by_hand(const inspect::ModelReading& reading, models::HeadIndex head,
                                std::int64_t q) {
  const inspect::ReadLayer& layer = reading.layers[static_cast<std::size_t>(head.layer)];
  const std::int64_t group = layer.query.extent(0) / layer.key.extent(0);
  const std::int64_t dim = layer.query.extent(2);
  const std::int64_t n = layer.query.extent(1);
  std::vector<double> row(static_cast<std::size_t>(n));
  double sum = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    if (!reading.visible(q, k)) continue;
    double score = 0;
    for (std::int64_t i = 0; i < dim; ++i) {
      score +=
          static_cast<double>(layer.query(head.head, q, i)) * layer.key(head.head / group, k, i);
    }
    row[static_cast<std::size_t>(k)] = std::exp(score / std::sqrt(static_cast<double>(dim)));
    sum += row[static_cast<std::size_t>(k)];
  }
  for (double& weight : row) weight /= sum;
  return row;
}

double largest_difference(const inspect::ModelReading& reading, models::HeadIndex head) {
  const FloatView weights = weights_of_head(reading, head);
  double most = 0;
  for (std::int64_t q = 0; q < weights.extent(0); ++q) {
    const std::vector<double> row = row_by_hand(reading, head, q);
    for (std::int64_t k = 0; k < weights.extent(1); ++k) {
      most = std::max(most, std::abs(weights(q, k) - row[static_cast<std::size_t>(k)]));
    }
  }
  return most;
}

}  // namespace

void show_weights(Report& report, const Subject& subject) {
  report.step("The weights of a head");
  const models::ModelConfig& config = subject.model.config();
  report.paragraph(
      "{}: {} layers of {} heads of {} numbers, {:.3g} million parameters, all of them trained. A "
      "head is written LAYER.HEAD, both counted from 0.",
      config.architecture, config.num_layers, config.num_heads, config.head_dim,
      static_cast<double>(subject.model.num_parameters()) / 1e6);
  report.record("num_layers", config.num_layers);
  report.record("num_heads", config.num_heads);
  report.record("num_parameters", subject.model.num_parameters());
  const inspect::ModelReading reading = inspect::read_layers(subject.model, kSentence);
  report.say();
  report.paragraph("\"{}\" is these tokens to it: {}", kSentence,
                   fmt::join(reading.input.labels, " "));
  report.record("tokens", reading.input.labels);
  const models::HeadIndex head = best_head_of(subject.scores, inspect::previous_token().name).head;
  const double difference = largest_difference(reading, head);
  report.say();
  report.show("weights",
              fmt::format("A = softmax(Q Kᵀ / √{}) of head {}; the columns are the same tokens:",
                          config.head_dim, name_of(head)),
              weights_of_head(reading, head), 2, reading.input.labels);
  report.record("weights_head", name_of(head));
  report.record("weights_difference", difference);
  report.say();
  report.paragraph(
      "What to notice: nothing about the operator is new. The same weights follow from the head's "
      "queries and keys by the formula, in plain loops, to {:.0e}. Training made the matrices that "
      "queries and keys come from, and with them the pattern.",
      difference);
}

void show_score(Report& report, const Subject& subject) {
  report.step("A score for a pattern");
  const BestHead best = best_head_of(subject.scores, inspect::previous_token().name);
  report.paragraph(
      "Head {} looks at the token before. How much so is a number: a pattern P gives each query q "
      "some keys, here q - 1, and the score is the share of the attention that these keys get, Σ "
      "(A ∘ P) / Σ A, over the rows that see a key of the pattern and another one.",
      name_of(best.head));
  const inspect::ModelReading reading = inspect::read_layers(subject.model, kSentence);
  const FloatView weights = weights_of_head(reading, best.head);
  const std::int64_t n = weights.extent(0);
  report.say();
  report.say("  {:<12} {:<12} {:>6}", "query", "key q - 1", "weight");
  double sum = 0;
  double chance = 0;
  for (std::int64_t q = 1; q < n; ++q) {
    report.say("  {:<12} {:<12} {:>6.2f}", reading.input.labels[static_cast<std::size_t>(q)],
               reading.input.labels[static_cast<std::size_t>(q - 1)], weights(q, q - 1));
    sum += weights(q, q - 1);
    std::int64_t seen = 0;
    for (std::int64_t k = 0; k < n; ++k) seen += reading.visible(q, k) ? 1 : 0;
    chance += 1 / static_cast<double>(seen);
  }
  const auto rows = static_cast<double>(n - 1);
  report.record("score_by_hand", sum / rows);
  report.record("chance_by_hand", chance / rows);
  report.record("score_of_texts", best.found.score);
  report.say();
  report.paragraph(
      "The mean, {:.3f}, is the score on this sentence. A head that looks at all tokens alike "
      "would "
      "have {:.3f}: that is chance. One sentence proves little; on {} rows of four other texts the "
      "head has {:.3f}, where chance is {:.3f}.",
      sum / rows, chance / rows, best.found.rows, best.found.score, best.found.uniform);
}

void draw_heads(Report& report, const Subject& subject) {
  const inspect::ModelReading reading = inspect::read_layers(subject.model, kDrawnSentence);
  MatricesPicture picture{.title = "Heads of a trained model on one sentence",
                          .note =
                              "For each pattern the head that follows it most. Row: the token "
                              "that asks; column: the token that is looked at.",
                          .columns = 2};
  for (const BestHead& best : best_heads(subject.scores)) {
    const std::string& name = best.pattern.name;
    if (name != inspect::previous_token().name && name != inspect::next_token().name &&
        name != inspect::first_token().name && name != inspect::duplicate_token().name) {
      continue;
    }
    picture.matrices.push_back(
        {.title = fmt::format("{}: {} scores {:.2f}", name, name_of(best.head), best.found.score),
         .values = to_tensor(weights_of_head(reading, best.head)),
         .queries = reading.input.labels,
         .keys = reading.input.labels,
         .visible = reading.visible});
  }
  report.draw(drawing_of(std::move(picture)));
}

namespace {

Subject read_subject(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    throw std::runtime_error(
        fmt::format("there is no model at '{}': `make models` fetches one to {}, --model names "
                    "another",
                    path.string(), kLessonModel));
  }
  models::Model model = models::load(path);
  std::vector<inspect::ModelText> texts;
  for (const char* text : kTexts) texts.push_back(inspect::read_text(model, text));
  inspect::HeadScoresOptions options;
  // As many random tokens as fit in the model's positions with one special token at each end.
  constexpr std::int64_t kEnds = 2;
  options.repeated.length = std::min(
      options.repeated.length, (model.config().max_positions - kEnds) / options.repeated.repeats);
  inspect::HeadScores scores = inspect::score_heads(model, std::move(texts), options);
  return {std::move(model), std::move(scores)};
}

void teach_real_heads(Report& report, const std::filesystem::path& path) {
  const Subject subject = read_subject(path);
  report.paragraph(
      "Heads in books look at verbs and their subjects. What do heads look at that nobody drew? "
      "This lesson opens a model that others have trained, names what can be named, and asks "
      "whether it matters.");
  show_weights(report, subject);
  show_score(report, subject);
  show_names(report, subject);
  show_entropies(report, subject);
  show_switched_off(report, subject);
  show_values(report, subject);
  show_exercises(report, subject);
  draw_heads(report, subject);
}

}  // namespace

}  // namespace real_heads_lesson

extern const Lesson kRealHeadsLesson = {
    .name = "real-heads",
    .shows = "a trained model: what heads look at, and what changes without them",
    .teach_of_model = real_heads_lesson::teach_real_heads};

}  // namespace heed::learn
