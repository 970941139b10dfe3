#include "heed/attention/position.h"

#include "gallery/pictures.h"
#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace position_lesson {

constexpr std::int64_t kWidth = 32;
constexpr std::int64_t kHeads = 4;

// Six words, and the order in which they are read the second time.
const std::vector<std::string> kWords{"The", "cat", "sat", "on", "the", "mat"};
const std::vector<std::int64_t> kOrder{5, 1, 4, 0, 3, 2};

// Returns the rows of x [1, 6, width] in kOrder.
Tensor<float> reordered(const Tensor<float>& x) {
  const Tensor<std::int64_t> rows({1, x.extent(1)}, kOrder);
  return embedding(rows, x.view().select(0, 0));
}

struct Model {
  AttentionParameters<float> parameters;
  Tensor<float> x;  // [1, 6, width]

  Tensor<float> operator()(const Tensor<float>& input) const {
    return multi_head_attention(input, input, parameters, kHeads).out;
  }
};

Model make_model() {
  TorchGenerator generator(0);
  auto parameters = attention_init(generator, kWidth, kWidth);
  auto x = generator.randn({1, 6, kWidth});
  return {std::move(parameters), std::move(x)};
}

std::vector<std::string> reordered_words() {
  std::vector<std::string> words;
  words.reserve(kOrder.size());
  for (const std::int64_t word : kOrder) words.push_back(kWords[static_cast<std::size_t>(word)]);
  return words;
}

void show_blindness(Report& report, const Model& model) {
  report.step("Attention sees a set");
  report.paragraph("Every word looks at every word, and a dot product knows no places. Read");
  report.say();
  report.say("    {}", fmt::join(kWords, " "));
  report.say("    {}", fmt::join(reordered_words(), " "));
  report.say();
  report.paragraph(
      "through the same attention, without positions. Largest difference between f(P x) and P "
      "f(x):");
  const double difference = max_difference(model(reordered(model.x)), reordered(model(model.x)));
  report.say();
  report.say("    {:.1e}", difference);
  report.record("without_positions", difference);
  report.say();
  report.paragraph(
      "What to notice: rounding and nothing else. Each word comes out the same in both; \"dog "
      "bites man\" and \"man bites dog\" cannot be told apart.");
}

void show_remedy(Report& report, const Model& model) {
  report.step("With positions added it sees a sequence");
  TorchGenerator generator(1);
  const auto sinusoidal = sinusoidal_encoding(6, kWidth);
  const auto learned = learned_encoding(generator, 6, kWidth);
  const auto difference = [&](const Tensor<float>& table) {
    return max_difference(model(add_positions(reordered(model.x), table)),
                          reordered(model(add_positions(model.x, table))));
  };
  report.paragraph(
      "Now each word carries the mark of its place, x[t] + table[t], and the place stays when the "
      "words move. The same difference:");
  report.say();
  report.say("    sinusoidal           {:.4f}", difference(sinusoidal));
  report.say("    learned, untrained   {:.4f}", difference(learned));
  report.record("with_sinusoidal", difference(sinusoidal));
  report.record("with_learned", difference(learned));
  report.say();
  report.paragraph("The learned table starts near 0 (deviation 0.02): training makes it larger.");
}

void show_sinusoidal(Report& report) {
  report.step("The sinusoidal table: clocks of different speeds");
  report.say("    PE(t, 2i)     = sin(t / 10000^(2i / d))");
  report.say("    PE(t, 2i + 1) = cos(t / 10000^(2i / d))");
  report.say();
  report.show("table", "d = 8, the first four places:", sinusoidal_encoding(4, 8), 4,
              {"t = 0", "t = 1", "t = 2", "t = 3"});

  const auto table = sinusoidal_encoding(40, kWidth);
  const auto rows = table.view().to_rank(4);
  const auto products =
      reference::attention(rows, rows, rows, {.scale = 1.0F}, reference::Keep::kScores).scores;
  const auto matrix = matrix_of(products);
  report.say();
  report.paragraph("Two places three apart have the same dot product wherever they are (d = {}):",
                   kWidth);
  report.say();
  report.say("    PE(0)·PE(3) = {:.4f}   PE(10)·PE(13) = {:.4f}   PE(30)·PE(33) = {:.4f}",
             matrix(0, 3), matrix(10, 13), matrix(30, 33));
  report.record("three_apart",
                nlohmann::json::array({matrix(0, 3), matrix(10, 13), matrix(30, 33)}));
  report.say();
  report.paragraph("so a distance looks the same everywhere in the sequence.");
}

void show_cost(Report& report) {
  report.step("What they cost, and how far they reach");
  TorchGenerator generator(0);
  const auto learned = learned_encoding(generator, 1000, 512);
  constexpr std::int64_t kSinusoidalParameters = 0;  // a formula has no parameters
  report.paragraph("For 1000 places and width 512:");
  report.say();
  report.say("    sinusoidal  {:>8} parameters, any length: it is a formula",
             kSinusoidalParameters);
  report.say("    learned     {:>8} parameters, and no place beyond its table:",
             learned.num_elements());
  report.record("sinusoidal_parameters", kSinusoidalParameters);
  report.record("learned_parameters", learned.num_elements());
  report.say();
  try {
    add_positions(Tensor<float>({1001, 512}), learned);
  } catch (const InvalidArgument& error) {
    report.say("  {}", error.what());
    report.record("refusal", error.what());
  }
}

void teach(Report& report) {
  report.paragraph("Attention alone: f(P x) = P f(x) for every change of order P.");
  report.say("With places:     f(x + positions).");
  const Model model = make_model();
  show_blindness(report, model);
  show_remedy(report, model);
  show_sinusoidal(report);
  show_cost(report);
  report.draw(draw_positions_128);
}

}  // namespace position_lesson

extern const Lesson kPositionLesson = {"position", "blind to order until positions are added",
                                       position_lesson::teach};

}  // namespace heed::learn
