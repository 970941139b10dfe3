#include <cmath>

#include "gallery/pictures.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"
#include "lessons/one_and_many.h"

namespace heed::learn {

namespace heads_lesson {

constexpr std::int64_t kEmbedDim = OneAndManyHeads::kEmbedDim;
constexpr std::int64_t kNumHeads = OneAndManyHeads::kNumHeads;

struct Configuration {
  std::string_view model;
  std::int64_t num_heads;
  std::int64_t embed_dim;
};

void show_split(Report& report) {
  report.step("Many heads are one width, cut");
  TorchGenerator generator(0);
  const auto x = generator.randn({2, 10, kEmbedDim});
  const auto heads = split_heads(x, kNumHeads);
  const auto merged = merge_heads(heads);
  report.say("  x                         {:<14} (batch, length, width)", to_string(x.shape()));
  report.say("  split_heads(x, {})         {:<14} (batch, heads, length, head_dim)", kNumHeads,
             to_string(heads.shape()));
  report.say("  merge_heads, its inverse  {:<14} largest difference from x: {}",
             to_string(merged.shape()), max_difference(merged, x));
  report.record("split_shape", heads.shape());
  report.say();
  report.paragraph(
      "Each head attends on its own in its share of the dimensions; the results are laid side by "
      "side and mixed by one more projection, out.");
}

void show_one_against_many(Report& report) {
  report.step("One head against eight");
  const OneAndManyHeads example;
  const auto& [from_one, from_many, mean] = example;
  report.paragraph(
      "The numbers are PyTorch's after manual_seed(42) and three randn(1, 4, 8) before the "
      "layers.");
  report.say();
  report.say("             output       weights");
  report.say("  1 head     {}   {}   one pattern per sentence", to_string(from_one.out.shape()),
             to_string(from_one.weights.shape()));
  report.say("  {} heads    {}   {}   {} patterns, each free to differ", kNumHeads,
             to_string(from_many.out.shape()), to_string(from_many.weights.shape()), kNumHeads);

  report.say();
  report.show("one_head", "The weights of the one head:", matrix_of(from_one.weights), 2);
  report.say();
  report.show("mean_of_four", "The mean of the first four of the eight heads:", mean, 2);
  report.record("eight_heads", from_many.weights.view().select(0, 0));
  const double single_spread = spread(matrix_of(from_many.weights)).deviation;
  const double mean_spread = spread(mean).deviation;
  report.record("spread", {{"head_0", single_spread}, {"mean_of_four", mean_spread}});
  report.say();
  report.paragraph(
      "What to notice: a mean of heads is flatter than each of them (deviation {:.3f} against "
      "{:.3f} for head 0). Looking at means hides what single heads do.",
      mean_spread, single_spread);
}

void show_parameters(Report& report) {
  report.step("And they cost no more");
  TorchGenerator generator(0);
  const auto parameters = attention_init(generator, kEmbedDim, kEmbedDim);
  const std::int64_t weights = parameters.query.weight.num_elements();
  const std::int64_t biases = parameters.query.bias.num_elements();
  report.paragraph("Four projections (query, key, value, out), each {} × {} weights and {} biases:",
                   kEmbedDim, kEmbedDim, biases);
  report.say();
  report.say("    4 · ({} + {}) = {} parameters", weights, biases, parameters.num_parameters());
  report.say();
  report.paragraph("whatever the number of heads: it says where to cut, not how much there is.");
  report.record("num_parameters", parameters.num_parameters());
}

void show_configurations(Report& report) {
  report.step("How models cut");
  report.paragraph("head_dim = width / heads, and scores are multiplied by 1/√head_dim:");
  report.say();
  report.say("  {:<16} {:>5} {:>7} {:>9} {:>8}", "", "heads", "width", "head_dim", "scale");
  auto rows = nlohmann::json::array();
  for (const Configuration& c : {Configuration{"the one above", kNumHeads, kEmbedDim},
                                 {"a small one", 8, 128},
                                 {"the first paper", 8, 512},
                                 {"GPT-2", 12, 768},
                                 {"GPT-3", 96, 12288},
                                 {"Llama 2 7B", 32, 4096}}) {
    const std::int64_t head_dim = c.embed_dim / c.num_heads;
    const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
    report.say("  {:<16} {:>5} {:>7} {:>9} {:>8.4f}", c.model, c.num_heads, c.embed_dim, head_dim,
               scale);
    rows.push_back({{"model", c.model},
                    {"num_heads", c.num_heads},
                    {"embed_dim", c.embed_dim},
                    {"head_dim", head_dim},
                    {"scale", scale}});
  }
  report.record("configurations", rows);
  report.say();
  report.paragraph("What to notice: large models have more heads, not wider ones: 64 to 128.");
}

void teach(Report& report) {
  report.paragraph("headₕ = attention(x Wqₕ, x Wkₕ, x Wvₕ)");
  report.say("out    = [head₁, …, headₙ] Wo");
  show_split(report);
  show_one_against_many(report);
  show_parameters(report);
  show_configurations(report);
  report.draw(draw_one_and_many_heads);
}

}  // namespace heads_lesson

extern const Lesson kHeadsLesson = {"heads", "one head against many, and real models",
                                    heads_lesson::teach};

}  // namespace heed::learn
