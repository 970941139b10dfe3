// heed demo: attention on one sentence, from words to weights.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "heed/inspect/sentence.h"
#include "heed/viz/layout.h"
#include "heed/viz/terminal.h"
#include "sentence_files.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr const char* kSentence = "The cat sat on the mat";
constexpr std::int64_t kReader = 2;  // the query whose row is read out: "sat"
constexpr int kWidestParagraph = 80;
constexpr std::int64_t kShownNumbers = 6;

class Page {
 public:
  explicit Page(int width) : width_(std::min(width, kWidestParagraph)) {}

  void heading(std::string_view text) { text_ += fmt::format("\n{}\n\n", text); }
  void paragraph(std::string_view text) { text_ += wrap_text(text, width_); }
  void block(const std::string& text) { text_ += '\n' + text; }
  const std::string& text() const { return text_; }

 private:
  int width_;
  std::string text_;
};

std::string first_numbers(const SentenceAttention& attention) {
  const FloatView start = attention.vectors.view().slice(1, 0, kShownNumbers);
  return render_matrix(start, {.decimals = 2, .row_labels = attention.labels});
}

// Returns for example "0.24 of its attention goes to The, 0.36 to cat, 0.40 to sat".
std::string read_out(const SentenceAttention& attention) {
  std::string text;
  for (std::int64_t key = 0; key <= kReader; ++key) {
    text += fmt::format("{}{:.2f}{} to {}",
                        key == 0         ? ""
                        : key == kReader ? " and "
                                         : ", ",
                        attention.weights.view()(0, kReader, key),
                        key == 0 ? " of its attention goes" : "",
                        attention.labels[static_cast<std::size_t>(key)]);
  }
  return text;
}

void print_demo() {
  const TerminalStyle style = detect_terminal(STDOUT_FILENO);
  const SentenceAttention attention = inspect::attend(kSentence);
  const SentenceSettings& settings = attention.settings;
  Page page(style.width);

  page.paragraph(fmt::format("Attention on the sentence \"{}\".", kSentence));
  page.heading("1. Words become numbers");
  page.paragraph(fmt::format(
      "A tokeniser cuts the sentence into {} tokens and gives each an id; equal words get equal "
      "ids, and The is not the.",
      attention.num_tokens()));
  page.block(draw_tokens(attention, style));

  page.heading("2. Numbers become vectors");
  page.paragraph(fmt::format(
      "Each id names a vector of {} numbers, its embedding. To it is added a pattern of sines and "
      "cosines that says where in the sentence the token stands. The first {}:",
      settings.d_model, kShownNumbers));
  page.block(first_numbers(attention));

  page.heading("3. Vectors attend to each other");
  page.paragraph(fmt::format(
      "Each token asks a question (a query) and every token offers an answer (a key). The better "
      "they match, the larger the weight. {} heads ask different questions at the same time:",
      settings.num_heads));
  page.block(fmt::format("  weights = softmax(query . key / sqrt({}))\n", settings.head_dim()));
  page.block(draw_heads(attention, all_heads(attention), style));

  page.heading("How to read it");
  page.paragraph(fmt::format(
      "A row is the token that asks, a column a token that is listened to. Row {} of head 0: {}. "
      "Each row adds up to 1. {} marks the future, which a causal mask hides: when a model "
      "predicts the next word, no token may look ahead. The new vector of a token is the average "
      "of what the tokens have to say (their values), weighted by its row.",
      attention.labels[kReader], read_out(attention), style.utf8 ? "·" : "x"));
  page.paragraph(fmt::format(
      "Nothing here has been trained: the parameters are random (seed {}), so these weights are "
      "what a model has before it has learnt whom to listen to.",
      settings.seed));

  page.heading("Where to go next");
  std::cout << page.text()
            << "  heed explain \"Any sentence of yours\"   the same with your words and settings\n"
               "  heed lesson                            attention step by step, every number\n"
               "  heed run --help                        attention on your own arrays\n";
}

}  // namespace

void add_demo(CLI::App& command) {
  CLI::App* verb =
      command.add_subcommand("demo", "Watch attention work on one sentence, from words to weights");
  verb->callback(print_demo);
}

}  // namespace heed::cli
