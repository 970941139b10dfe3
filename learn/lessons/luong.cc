#include <array>
#include <string_view>
#include <utility>

#include "heed/core/random.h"
#include "heed/nn/alignment_layers.h"
#include "heed/nn/tape.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"
#include "lessons/tiny_translation.h"

namespace heed::learn {

namespace luong_lesson {

using nn::LuongScore;
using nn::SourceAttention;

struct Method {
  std::string_view name;
  LuongScore score;
  std::string_view formula;
};
constexpr std::array kMethods{Method{"dot", LuongScore::kDot, "h · s"},
                              Method{"general", LuongScore::kGeneral, "h · W s"},
                              Method{"concat", LuongScore::kConcat, "vᵀ tanh(W [h; s])"}};

void show_by_hand(Report& report) {
  report.step("By hand");
  const Tensor<float> encoder({1, 3, 2}, {1, 0, 0, 1, -1, -1});
  const Tensor<float> decoder({1, 2}, {0.5, -0.5});
  const nn::NoGrad no_grad;
  nn::MultiplicativeAttention<> dot(2, 2, LuongScore::kDot);
  nn::MultiplicativeAttention<> general(2, 2, LuongScore::kGeneral);
  const auto with_matrix = [&](const Tensor<float>& matrix) {
    general.load_state_dict({{"W.weight", matrix.view()}});
    return general.forward(encoder, decoder).weights.value();
  };
  report.paragraph("s = (0.5, −0.5); h = (1, 0), (0, 1), (−1, −1): h · s = 0.5, −0.5, 0.");
  const auto plain = dot.forward(encoder, decoder).weights.value();
  const auto same = with_matrix(Tensor<float>({2, 2}, {1, 0, 0, 1}));
  const auto swapped = with_matrix(Tensor<float>({2, 2}, {0, 1, 1, 0}));
  report.show("dot_weights", "dot:", plain);
  report.show("general_weights", "general, W the identity:", same);
  report.show("swapped_weights", "general, W swaps the two numbers of s:", swapped);
  report.say();
  report.paragraph(
      "What to notice: dot compares numbers at the same place; W lets the model learn which number "
      "of the decoder's state asks for which of the encoder's.");
}

void show_parameters(Report& report) {
  report.step("What each has to learn, at width 512");
  report.say("  {:<9} {:<18} {:>10}", "", "score", "parameters");
  for (const Method& method : kMethods) {
    const nn::MultiplicativeAttention<> attention(512, 512, method.score);
    report.say("  {:<9} {:<18} {:>10}", method.name, method.formula,
               grouped(attention.num_parameters()));
    report.record(std::string(method.name) + "_parameters", attention.num_parameters());
  }
}

// Returns the weights of the first source, one row for each method.
DrawnMatrix show_layers(Report& report) {
  report.step("As layers: the same source, three ways to look at it");
  constexpr std::int64_t kStates = 6;
  DrawnMatrix drawn{.title = "",
                    .values = Tensor<float>({kMethods.size(), kStates}),
                    .query_title = "score",
                    .key_title = "source state"};
  float* drawn_weight = drawn.values.data();
  for (const Method& method : kMethods) {
    set_seed(0);
    nn::MultiplicativeAttention<> attention(16, 16, method.score);
    const auto encoder = default_generator().randn({2, kStates, 16});
    const auto decoder = default_generator().randn({2, 16});
    const nn::NoGrad no_grad;
    const auto [context, weights] = attention.forward(encoder, decoder);
    const std::string name(method.name);
    report.record(name + "_layer_weights", weights.value());
    report.record(name + "_layer_context", context.value());
    report.show(name + "_first", name + ":", weights.value().select(0, 0), 3);
    drawn.queries.push_back(name);
    for_each_element(weights.value().select(0, 0),
                     [&drawn_weight](float weight) { *drawn_weight++ = weight; });
  }
  report.say();
  report.paragraph(
      "Layers of width 16 as they are drawn from seed 0. A dot product of 16 unscaled terms is "
      "already sharp; a trained W or v decides how sharp the others are.");
  return drawn;
}

void show_speed(Report& report) {
  report.step("What each costs");
  report.paragraph("8 sources of 20 states, 30 decoder steps, width 256, measured here and now:");
  report.say();
  const nn::NoGrad no_grad;
  set_seed(0);
  const nn::Variable<> encoder(default_generator().randn({8, 20, 256}));
  const nn::Variable<> decoder(default_generator().randn({8, 30, 256}));
  auto times = nlohmann::json::object();
  for (const Method& method : kMethods) {
    nn::MultiplicativeAttention<> attention(256, 256, method.score);
    const double time = shortest_run(3, [&] { attention.forward(encoder, decoder); });
    report.say("  {:<9} {:>8.3f} ms", method.name, time);
    times[std::string(method.name)] = time;
  }
  nn::AdditiveAttention<> additive(256, 256, 256);
  const double time = shortest_run(3, [&] { additive.forward(encoder, decoder); });
  report.say("  {:<9} {:>8.3f} ms", "additive", time);
  times["additive"] = time;
  report.record("milliseconds", times);
  report.say();
  report.paragraph(
      "What to notice: dot and general are products of matrices; concat and additive take a tanh "
      "of {} numbers, one for each state, step and dimension.",
      grouped(8 * 20 * 30 * 256));
}

void show_training(Report& report) {
  report.step("Which learns best: the exercise, in small");
  constexpr std::int64_t kSteps = 120;
  const TinyTask task = tiny_reversal(6, 1500);
  report.paragraph(
      "The same decoder with each, {} steps of 32 words of 2 to 6 letters to be spelled backwards "
      "(seed 0); then 200 words that were not among them:",
      kSteps);
  report.say();
  report.say("  {:<9} {:>10} {:>9} {:>9} {:>12} {:>13}", "", "parameters", "loss", "BLEU",
             "exact match", "tokens/s");
  auto rows = nlohmann::json::array();
  struct Kind {
    std::string_view name;
    SourceAttention attention;
  };
  for (const Kind& kind :
       {Kind{"additive", SourceAttention::kAdditive}, Kind{"dot", SourceAttention::kDot},
        Kind{"general", SourceAttention::kGeneral}, Kind{"concat", SourceAttention::kConcat}}) {
    const auto model = tiny_model(task, kind.attention, 32);
    const TinyTraining training = train_tiny(*model, task, kSteps, 1e-2);
    const auto score = score_tiny(*model, task, task.corpus.test, 6);
    report.say("  {:<9} {:>10} {:>9.3f} {:>9.1f} {:>10.1f} % {:>13.0f}", kind.name,
               grouped(model->num_parameters()), training.loss, score.bleu.score, 100 * score.exact,
               training.tokens_per_second);
    rows.push_back({{"attention", kind.name},
                    {"parameters", model->num_parameters()},
                    {"loss", training.loss},
                    {"bleu", score.bleu.score},
                    {"exact_match", score.exact},
                    {"tokens_per_second", training.tokens_per_second}});
  }
  report.record("trained", rows);
  report.say();
  report.paragraph(
      "What to notice: on so small a task all of them learn where to look, and seeds differ as "
      "much as scores do. A real comparison takes more data and several seeds.");
}

void teach(Report& report) {
  report.paragraph(
      "Luong, Pham and Manning, 2015: simpler scores of encoder state h and decoder state s.");
  show_by_hand(report);
  show_parameters(report);
  DrawnMatrix layers = show_layers(report);
  show_speed(report);
  show_training(report);
  report.draw(drawing_of({.title = "Three scores look at the same source",
                          .note = "Layers of width 16 as they are drawn from seed 0.",
                          .matrices = {std::move(layers)}}));
}

}  // namespace luong_lesson

extern const Lesson kLuongLesson = {"luong", "dot, general and concat: parameters, cost, learning",
                                    luong_lesson::teach};

}  // namespace heed::learn
