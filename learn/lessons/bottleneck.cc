#include <array>
#include <cmath>

#include "heed/core/random.h"
#include "heed/nn/lstm.h"
#include "heed/nn/ops.h"
#include "heed/tasks/vocabulary.h"
#include "heed/viz/chart.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"
#include "lessons/tiny_translation.h"

namespace heed::learn {

namespace bottleneck_lesson {

void show_sentence(Report& report) {
  report.step("A sentence through a needle's eye");
  constexpr std::int64_t kWidth = 512;
  const std::string english = "The quick brown fox jumps over the lazy dog";
  const std::string french = "Le rapide renard brun saute par-dessus le chien paresseux";
  const auto words = [](const std::string& text) {
    return static_cast<std::int64_t>(tasks::split_units(text, tasks::Units::kWords).size());
  };
  report.say("  source   {}", english);
  report.say("  becomes  one vector of {} numbers", kWidth);
  report.say("  target   {}", french);
  report.record("source_words", words(english));
  report.record("target_words", words(french));
  report.record("summary_numbers", kWidth);
  report.say();
  report.say("  {:>6} {:>22} {:>10} {:>24}", "words", "the decoder gets", "a word",
             "with attention");
  auto rows = nlohmann::json::array();
  for (const std::int64_t n : {words(english), std::int64_t{20}, std::int64_t{60}}) {
    const double share = static_cast<double>(kWidth) / static_cast<double>(n);
    report.say("  {:>6} {:>14} numbers {:>10.1f} {:>16} numbers", n, kWidth, share,
               grouped(n * kWidth));
    rows.push_back({{"words", n}, {"numbers_per_word", share}, {"with_attention", n * kWidth}});
  }
  report.record("shares", rows);
  report.say();
  report.paragraph("What to notice: however long the source, the summary is as wide as before.");
}

// Shows |∂ Σ summary / ∂ word| for each word of a source.
void show_forgetting(Report& report) {
  report.step("Early words are forgotten first");
  constexpr std::int64_t kWords = 40;
  constexpr std::int64_t kWidth = 32;
  set_seed(0);
  nn::LSTM<> encoder(kWidth, kWidth);
  const nn::Variable<> x(default_generator().randn({1, kWords, kWidth}), true);
  nn::sum(encoder.forward(x).state.hidden).backward();
  std::vector<double> influence;
  for (std::int64_t word = 0; word < kWords; ++word) {
    double squares = 0;
    for (const float g : x.grad().select(0, 0).select(0, word).elements()) {
      squares += static_cast<double>(g) * static_cast<double>(g);
    }
    influence.push_back(std::sqrt(squares));
  }
  report.paragraph(
      "An LSTM of width {} (seed 0) reads {} random words. How much its last state, the summary, "
      "changes with each, relative to the last word:",
      kWidth, kWords);
  report.say();
  for (const std::size_t word : {0, 9, 19, 29, 34, 37, 39}) {
    report.say("  word {:>2}   {:.2e}", word + 1, influence[word] / influence.back());
  }
  report.record("influence", influence);
}

// Invented numbers in the style of research papers.
constexpr std::array kIllustrativeLengths{10, 20, 30, 40, 50, 60};
constexpr std::array kIllustrativeWithout{35, 32, 28, 22, 16, 12};
constexpr std::array kIllustrativeWith{38, 37, 36, 35, 34, 33};

void show_illustration(Report& report) {
  report.step("What is usually drawn: illustrative");
  report.paragraph("Curves of BLEU by sentence length, made up:");
  report.say();
  report.say("  length               {:>5}", fmt::join(kIllustrativeLengths, " "));
  report.say("  without attention    {:>5}", fmt::join(kIllustrativeWithout, " "));
  report.say("  with attention       {:>5}", fmt::join(kIllustrativeWith, " "));
  report.record("illustrative", {{"lengths", kIllustrativeLengths},
                                 {"without_attention", kIllustrativeWithout},
                                 {"with_attention", kIllustrativeWith}});
  report.say();
  report.paragraph("Nobody measured these. The next step does, in small.");
}

// Returns BLEU by length, one curve without and one with attention.
std::array<Curve, 2> show_measurement(Report& report) {
  report.step("What is measured");
  constexpr std::int64_t kSteps = 200;
  constexpr std::int64_t kGroup = 3;
  const TinyTask task = tiny_reversal(12, 3000);
  report.paragraph(
      "Two models that differ in one thing: what the decoder sees of the source, its summary or, "
      "by h · s, all of it. Each learns for {} steps of 32 words of 2 to 12 letters to spell them "
      "backwards, from seed 0; then 200 words that were not among them:",
      kSteps);
  report.say();
  auto rows = nlohmann::json::array();
  std::vector<std::vector<tasks::LengthScore>> scores;
  for (const auto attention : {nn::SourceAttention::kNone, nn::SourceAttention::kDot}) {
    const auto model = tiny_model(task, attention, 32);
    const TinyTraining training = train_tiny(*model, task, kSteps, 1e-2);
    const auto score = score_tiny(*model, task, task.corpus.test, kGroup);
    scores.push_back(score.by_length);
    const char* name = attention == nn::SourceAttention::kNone ? "without" : "with";
    report.say("  {:<8} attention: {} parameters, loss {:.3f}, exact match {:.1f} %", name,
               grouped(model->num_parameters()), training.loss, 100 * score.exact);
    auto by_length = nlohmann::json::array();
    for (const auto& group : score.by_length) {
      by_length.push_back({{"min_length", group.min_length},
                           {"max_length", group.max_length},
                           {"count", group.count},
                           {"bleu", group.bleu},
                           {"exact_match", group.exact}});
    }
    rows.push_back({{"attention", attention == nn::SourceAttention::kNone ? "none" : "dot"},
                    {"parameters", model->num_parameters()},
                    {"loss", training.loss},
                    {"exact_match", score.exact},
                    {"by_length", by_length}});
  }
  report.record("measured", rows);
  report.say();
  report.say("  {:>9} {:>14} {:>14} {:>16} {:>14}", "letters", "BLEU without", "BLEU with",
             "exact without", "exact with");
  for (std::size_t i = 0; i < scores[0].size(); ++i) {
    const auto& without = scores[0][i];
    const auto& with = scores[1][i];
    report.say("  {:>3} to {:>2} {:>14.1f} {:>14.1f} {:>14.1f} % {:>12.1f} %", without.min_length,
               without.max_length, without.bleu, with.bleu, 100 * without.exact, 100 * with.exact);
  }
  report.say();
  std::array curves{Curve{.name = "without attention", .has_markers = true},
                    Curve{.name = "with attention", .has_markers = true}};
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (const auto& group : scores[i]) {
      curves[i].x.push_back(static_cast<double>(group.min_length + group.max_length) / 2);
      curves[i].y.push_back(group.bleu);
    }
  }
  report.paragraph(
      "What to notice: both have as many parameters. Short words fit through the needle's eye; the "
      "longer they are, the more is lost, and looking back is what saves them.");
  return curves;
}

void teach(Report& report) {
  report.paragraph(
      "An encoder-decoder without attention hands the decoder one vector, whatever it read.");
  show_sentence(report);
  show_forgetting(report);
  show_illustration(report);
  const auto measured = show_measurement(report);
  report.draw([measured](Theme theme) {
    return curves_figure(measured,
                         {.title = "What one vector loses, by length",
                          .note = "Measured as this was drawn: words of up to 12 letters, "
                                  "spelled backwards; 200 that training never saw.",
                          .x_title = "length of the source, letters",
                          .y_title = "BLEU, 0 to 100",
                          .y_low = 0,
                          .theme = theme});
  });
}

}  // namespace bottleneck_lesson

extern const Lesson kBottleneckLesson = {
    "bottleneck", "one vector for a whole sentence, and what it costs by length",
    bottleneck_lesson::teach};

}  // namespace heed::learn
