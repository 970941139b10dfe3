#include <fmt/ranges.h>

#include "gallery/pictures.h"
#include "heed/attention.h"
#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace masks_lesson {

const ScoreShape kSquare{.q_len = 6, .kv_len = 6};
constexpr MaskGlyphs kLetters{"T", "F", " "};
constexpr MaskGlyphs kSwappedLetters{"F", "T", " "};
constexpr MaskGlyphs kDigits{"1", "0", " "};
constexpr MaskGlyphs kAddends{"0", "-inf", " "};

const std::vector<std::string> kWords{"The", "cat", "sat", "on", "the", "mat"};

// One form of a mask. Its lines are printed under its title and recorded.
struct Form {
  std::string name;
  std::string title;
  std::vector<std::string> lines;
};

void show_side_by_side(Report& report, const std::vector<Form>& forms) {
  const auto say_columns = [&](const std::string& label, auto text_of) {
    std::string line = fmt::format("  {:<4}", label);
    for (const Form& form : forms) line += fmt::format(" {:<14}", text_of(form));
    report.say("{}", line.substr(0, line.find_last_not_of(' ') + 1));
  };
  say_columns("", [](const Form& form) { return form.title; });
  for (std::size_t row = 0; row < kWords.size(); ++row) {
    say_columns(kWords[row], [row](const Form& form) { return form.lines[row]; });
  }
  for (const Form& form : forms) report.record(form.name, form.lines);
}

void show_conventions(Report& report) {
  report.step("One mask, written in seven ways");
  report.paragraph(
      "The causal mask of six words: row i is the query, column j the key, and a query may see j ≤ "
      "i.");
  report.say();
  show_side_by_side(report, {{"allow", "allow", to_lines(causal(), kSquare, kLetters)},
                             {"block", "block", to_lines(causal(), kSquare, kSwappedLetters)},
                             {"tril", "tril", to_lines(causal(), kSquare, kDigits)},
                             {"additive", "additive", to_lines(causal(), kSquare, kAddends)}});
  report.say();
  report.say("  allow     true = may attend (scaled_dot_product_attention in PyTorch)");
  report.say("  block     true = may not attend (nn.MultiheadAttention in PyTorch)");
  report.say("  tril      1 = may attend, 0 = may not: the lower triangle of a matrix of ones");
  report.say("  additive  added to the scores: 0 changes nothing, exp(-inf) is 0");
  report.say();
  report.paragraph("And for the eye:");
  report.say();
  show_side_by_side(report, {{"hash", "#.", to_lines(causal(), kSquare, kHashGlyphs)},
                             {"check", "✓✗", to_lines(causal(), kSquare, kCheckGlyphs)},
                             {"blocks", "█·", to_lines(causal(), kSquare, kBlockGlyphs)}});
}

void show_agreement(Report& report) {
  report.step("Said rightly, they all mean the same");
  TorchGenerator generator(0);
  const auto x = generator.randn({1, 1, 6, 8});
  const auto expected = attention(x, x, x, {.mask = causal()});
  const auto difference = [&](const Mask& mask) {
    return max_difference(attention(x, x, x, {.mask = mask}), expected);
  };
  const double allow = difference(Mask::allow(materialize_allow(causal(), kSquare)));
  const double block = difference(Mask::block(materialize_block(causal(), kSquare)));
  const double additive = difference(Mask::additive(materialize_additive(causal(), kSquare)));
  report.paragraph("Largest difference between the output under causal() and under");
  report.say();
  report.say("  Mask::allow(tensor)     {:.1g}", allow);
  report.say("  Mask::block(tensor)     {:.1g}", block);
  report.say("  Mask::additive(tensor)  {:.1g}", additive);
  report.say();
  report.paragraph("which is the rounding of a float: one formula, two orders of operations.");
  report.record("differences", {{"allow", allow}, {"block", block}, {"additive", additive}});
}

void show_padding(Report& report) {
  report.step("Padding: sentences of different lengths in one batch");
  const Tensor<std::int64_t> ids({2, 6}, {5, 3, 7, 2, 0, 0, 8, 1, 4, 6, 9, 0});
  const Mask padding = key_padding(ids, 0);
  const auto allowed =
      materialize_allow(padding, {.batch = 2, .num_heads = 1, .q_len = 1, .kv_len = 6});
  report.paragraph("Token ids; 0 is padding, which nobody should look at:");
  report.say();
  auto patterns = nlohmann::json::array();
  for (std::int64_t b = 0; b < 2; ++b) {
    const ScoreShape one_query{.batch = 2, .q_len = 1, .kv_len = 6};
    patterns.push_back(to_lines(padding, one_query, kDigits, b)[0]);
    report.say("  {}   →   {}", fmt::join(ids.view().select(0, b).elements(), " "),
               patterns.back().get<std::string>());
  }
  report.record("padding", patterns);
  report.record("padding_shape", allowed.shape());
  report.say();
  report.paragraph(
      "As a tensor the mask is [B, 1, 1, T] = {}: the same for every head and every query, so "
      "those two dimensions are 1 and are repeated (they broadcast).",
      to_string(allowed.shape()));

  report.step("Both at once: causal() & key_padding(ids, 0)");
  report.paragraph("A key is visible when both masks allow it. {}:",
                   (causal() & padding).description());
  report.say();
  const ScoreShape square{.batch = 2, .q_len = 6, .kv_len = 6};
  const auto first = to_lines(causal() & padding, square, kHashGlyphs, 0);
  const auto second = to_lines(causal() & padding, square, kHashGlyphs, 1);
  for (std::size_t row = 0; row < first.size(); ++row) {
    report.say("  {}     {}", first[row], second[row]);
  }
  report.record("combined", {first, second});
}

void show_wrong_polarity(Report& report) {
  report.step("What happens when the meaning of true is guessed");
  report.paragraph("The allow mask of step 1, taken for a block mask. Every shape fits; no error:");
  report.say();
  const Mask wrong = Mask::block(materialize_allow(causal(), kSquare));
  const auto lines = to_lines(wrong, kSquare);
  for (const std::string& line : lines) report.say("  {}", line);
  report.record("wrong", lines);

  TorchGenerator generator(0);
  const auto x = generator.randn({1, 1, 6, 8});
  const auto result = reference::attention(x, x, x, {.mask = wrong}, reference::Keep::kWeights);
  report.say();
  report.show("wrong_weights", "The weights:", matrix_of(result.weights), 2, kWords);
  report.say();
  report.paragraph(
      "What to notice: each word sees the future and nothing else; the last word sees nothing at "
      "all. A model trained so looks brilliant, for it reads the answer, and fails when it must "
      "write. This is why heed takes no bare boolean tensor: one says Mask::allow(t), "
      "Mask::block(t) or Mask::additive(t).");
}

void teach(Report& report) {
  report.paragraph("A mask M of 0 and −∞ says who may attend to whom: softmax(Q Kᵀ / √d + M) V.");
  show_conventions(report);
  show_agreement(report);
  show_padding(report);
  show_wrong_polarity(report);
  report.draw(draw_causal_mask);
}

}  // namespace masks_lesson

extern const Lesson kMasksLesson = {"masks", "every convention, padding, wrong polarity",
                                    masks_lesson::teach};

}  // namespace heed::learn
