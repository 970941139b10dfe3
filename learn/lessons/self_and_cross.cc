#include <sstream>

#include "heed/attention.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace self_and_cross_lesson {

constexpr std::int64_t kEmbedDim = 64;

void say_shape(Report& report, const std::string& name, std::string_view text, const Shape& shape) {
  report.say("  {:<34} {}", text, to_string(shape));
  report.record(name, shape);
}

// Prints a message indented and broken between words.
void say_quoted(Report& report, const std::string& message) {
  std::istringstream words(message);
  std::string line;
  for (std::string word; words >> word; line += ' ' + word) {
    if (line.size() + word.size() < 76) continue;
    report.say("   {}", line);
    line.clear();
  }
  report.say("   {}", line);
}

struct Sequences {
  AttentionParameters<float> parameters;
  Tensor<float> written;  // [2, 4, 64]: the sequence being written
  Tensor<float> read;     // [2, 6, 64]: the sequence that was read
};

Sequences draw_sequences() {
  TorchGenerator generator(0);
  auto parameters = attention_init(generator, kEmbedDim, kEmbedDim);
  auto written = generator.randn({2, 4, kEmbedDim});
  auto read = generator.randn({2, 6, kEmbedDim});
  return {std::move(parameters), std::move(written), std::move(read)};
}

void show_self(Report& report, const Sequences& sequences) {
  report.step("Self-attention: a sequence asks itself");
  report.paragraph("Queries, keys and values are three projections of the same x:");
  report.say();
  report.say("    q = x Wq,  k = x Wk,  v = x Wv");
  report.say();
  const auto& x = sequences.read;
  const auto attended = multi_head_attention(x, x, sequences.parameters, 1);
  say_shape(report, "self_x", "x  (batch, length, width)", x.shape());
  say_shape(report, "self_weights", "weights  (batch, head, query, key)", attended.weights.shape());
  say_shape(report, "self_out", "output", attended.out.shape());
  report.say();
  report.paragraph("What to notice: the table of weights is square, and the output has x's shape.");
}

void show_cross(Report& report, const Sequences& sequences) {
  report.step("Cross-attention: one sequence asks another");
  report.paragraph(
      "A translator that has written 4 words looks at the 6 words it reads: queries come from what "
      "is written (x), keys and values from what is read (context).");
  report.say();
  report.say("    q = x Wq,  k = context Wk,  v = context Wv");
  report.say();
  const auto attended =
      multi_head_attention(sequences.written, sequences.read, sequences.parameters, 1);
  say_shape(report, "cross_x", "x", sequences.written.shape());
  say_shape(report, "cross_context", "context", sequences.read.shape());
  say_shape(report, "cross_weights", "weights", attended.weights.shape());
  say_shape(report, "cross_out", "output", attended.out.shape());
  report.say();
  report.show("cross_first_weights",
              "How the 4 words written look at the 6 words read:", matrix_of(attended.weights));
  report.show_row_sums("cross_row_sums", matrix_of(attended.weights));
  report.say();
  report.paragraph(
      "What to notice: one output per query; each row sums to 1 over the keys. The lengths may "
      "differ; the number of keys and of values may not.");
  report.draw(drawing_of({.title = "Cross-attention: four words written look at six read",
                          .note = "Random parameters (seed 0).",
                          .matrices = {{.title = "",
                                        .values = matrix_from(matrix_of(attended.weights)),
                                        .query_title = "word written",
                                        .key_title = "word read"}}}));
}

void show_value_dim(Report& report) {
  report.step("Values may have a width of their own");
  report.paragraph(
      "Queries and keys meet in a dot product, so they have the same head_dim. Values are only "
      "mixed, so the output takes their width, value_dim:");
  report.say();
  TorchGenerator generator(0);
  const auto query = generator.randn({2, 1, 4, kEmbedDim});
  const auto key = generator.randn({2, 1, 6, kEmbedDim});
  const auto value = generator.randn({2, 1, 6, 16});
  say_shape(report, "query", "query  (…, 4 queries, head_dim)", query.shape());
  say_shape(report, "key", "key    (…, 6 keys, head_dim)", key.shape());
  say_shape(report, "value", "value  (…, 6 values, value_dim)", value.shape());
  say_shape(report, "out", "output", attention(query, key, value).shape());
}

void show_causal(Report& report, const Sequences& sequences) {
  report.step("No past and future across two sequences");
  report.paragraph(
      "Word 2 of one sentence is neither before nor after word 3 of another. causal() therefore "
      "refuses when the lengths differ:");
  report.say();
  try {
    multi_head_attention(sequences.written, sequences.read, sequences.parameters, 1,
                         {.mask = causal()});
  } catch (const InvalidArgument& error) {
    say_quoted(report, error.what());
    report.record("refusal", error.what());
  }
  report.say();
  report.paragraph("Where both are parts of one sequence, the alignment is said, not guessed:");
  report.say();
  const ScoreShape shape{.q_len = 4, .kv_len = 6};
  const auto top_left = to_lines(causal_top_left(), shape);
  const auto bottom_right = to_lines(causal_bottom_right(), shape);
  report.say("  causal_top_left()   causal_bottom_right()");
  for (std::size_t row = 0; row < top_left.size(); ++row) {
    report.say("  {:<19} {}", top_left[row], bottom_right[row]);
  }
  report.record("top_left", top_left);
  report.record("bottom_right", bottom_right);
}

void teach(Report& report) {
  report.paragraph(
      "attention(q, k, v) does not ask where its three arguments come from. We choose.");
  const Sequences sequences = draw_sequences();
  show_self(report, sequences);
  show_cross(report, sequences);
  show_value_dim(report);
  show_causal(report, sequences);
}

}  // namespace self_and_cross_lesson

extern const Lesson kSelfAndCrossLesson = {
    "self-and-cross", "where queries, keys and values come from", self_and_cross_lesson::teach};

}  // namespace heed::learn
