#include <map>
#include <utility>

#include "heed/core/random.h"
#include "heed/inspect/layer_text.h"
#include "heed/inspect/layers.h"
#include "heed/nn/search.h"
#include "heed/nn/tape.h"
#include "heed/tasks/number_words.h"
#include "heed/viz/terminal.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"
#include "lessons/tiny_translation.h"

namespace heed::learn {

namespace seq2seq_lesson {

void show_architecture(Report& report) {
  report.step("The model: AttentionSeq2Seq(10000, 8000, d_model 256, 8 heads, 2 layers)");
  set_seed(0);
  nn::AttentionSeq2Seq<> model({.src_vocab_size = 10000, .tgt_vocab_size = 8000});
  model.eval();
  std::vector<std::pair<std::string, std::int64_t>> parts;
  for (const auto& [name, parameter] : model.named_parameters()) {
    const std::string part = name.substr(0, name.find('.'));
    if (parts.empty() || parts.back().first != part) parts.emplace_back(part, 0);
    parts.back().second += parameter.num_elements();
  }
  const std::map<std::string, std::string_view> roles{
      {"src_embedding", "source words, times √256, plus positions"},
      {"tgt_embedding", "target words, the same way"},
      {"encoder_lstm", "reads in both directions, 128 wide each"},
      {"encoder_attention", "self-attention over what was read"},
      {"encoder_norm", "x + attention(x), normalised"},
      {"decoder_lstm", "writes from left to right, from zeros"},
      {"cross_attention", "looks at the encoder at every step"},
      {"cross_norm", "x + attention(x), normalised"},
      {"output_projection", "scores of the 8,000 target words"}};
  auto counts = nlohmann::json::object();
  for (const auto& [part, count] : parts) {
    report.say("  {:<18} {:>10}  {}", part, grouped(count), roles.at(part));
    counts[part] = count;
  }
  report.say("  {:<18} {:>10}", "all", grouped(model.num_parameters()));
  report.record("parts", counts);
  report.record("parameters", model.num_parameters());
  const auto src = default_generator().randint(0, 10000, {4, 30});
  const auto tgt = default_generator().randint(0, 8000, {4, 25});
  const nn::NoGrad no_grad;
  const auto [logits, weights, state] = model.forward(src, tgt);
  report.say();
  report.say("  source             {}", to_string(src.shape()));
  report.say("  target             {}", to_string(tgt.shape()));
  report.say("  output logits      {}", to_string(logits.shape()));
  report.say("  attention weights  {}  (batch, heads, target, source)", to_string(weights.shape()));
  report.record("source_shape", src.shape());
  report.record("target_shape", tgt.shape());
  report.record("logits_shape", logits.shape());
  report.record("weights_shape", weights.shape());
  report.record("first_logits", logits.value().select(0, 0).select(0, 0).slice(0, 0, 8));
  report.record("first_weights", weights.view().select(0, 0).select(0, 0).select(0, 0));
}

// The words of an invented alignment.
const std::vector<std::string> kSource{"The", "cat", "sat", "on", "the", "mat", "."};
const std::vector<std::string> kTarget{"Le", "chat", "était", "assis", "sur", "le", "tapis", "."};

Tensor<float> illustrative_alignment() {
  return Tensor<float>({8, 7}, {0.8F, 0.1F, 0,    0,    0.1F, 0,    0,     //
                                0.1F, 0.8F, 0,    0,    0,    0.1F, 0,     //
                                0,    0.1F, 0.7F, 0.1F, 0,    0,    0.1F,  //
                                0,    0.1F, 0.7F, 0.1F, 0,    0,    0.1F,  //
                                0,    0,    0,    0.8F, 0.1F, 0,    0.1F,  //
                                0.1F, 0,    0,    0,    0.8F, 0,    0.1F,  //
                                0,    0.1F, 0,    0,    0,    0.8F, 0.1F,  //
                                0,    0,    0,    0,    0,    0,    1});
}

void show_illustration(Report& report) {
  report.step("An alignment as it is usually drawn: illustrative");
  const Tensor<float> weights = illustrative_alignment();
  report.paragraph("These weights are made up; rows are French, columns are English:");
  report.say();
  report.say("{}", render_heatmap(weights, {kTarget, kSource}, report.style(), {.legend = false}));
  report.record("illustrative", weights);
  report.show_row_sums("illustrative_sums", weights);
}

void show_training(Report& report) {
  report.step("An alignment as it is measured");
  constexpr std::int64_t kSteps = 800;
  const TinyTask task = tiny_reversal(6, 2000);
  set_seed(0);
  nn::AttentionSeq2Seq<> model({.src_vocab_size = task.source.size(),
                                .tgt_vocab_size = task.target.size(),
                                .d_model = 32,
                                .num_heads = 2,
                                .num_layers = 1,
                                .dropout = 0});
  const TinyTraining training = train_tiny(model, task, kSteps, 5e-3);
  const auto score = score_tiny(model, task, task.corpus.test, 6);
  report.paragraph(
      "The same model with width 32 and 2 heads, {} parameters, learns for {} steps to spell words "
      "of 2 to 6 letters backwards: loss {:.3f}; of 200 new words {:.1f} % are right (BLEU "
      "{:.1f}).",
      grouped(model.num_parameters()), kSteps, training.loss, 100 * score.exact, score.bleu.score);
  report.record("loss", training.loss);
  report.record("exact_match", score.exact);
  report.record("bleu", score.bleu.score);
  const std::string text = "a b c d e f";
  const auto ids = task.source.ids(text);
  const Tensor<std::int64_t> src({static_cast<std::int64_t>(ids.size())}, ids);
  const auto best = nn::beam_search(model, src, {.beam = 3, .max_len = 10}).front();
  report.say();
  report.say("  \"{}\" becomes \"{}\" (beam of 3)", text, task.target.decode(best.tokens));
  report.record("written", task.target.decode(best.tokens));
  const auto letters = tasks::split_units(text, tasks::Units::kWords);
  const auto written = task.target.tokens(best.tokens);
  MatricesPicture picture{
      .title = fmt::format("\"{}\" becomes \"{}\"", text, task.target.decode(best.tokens)),
      .note =
          "Where each letter that was written looked: cross-attention, "
          "trained as this was drawn."};
  for (std::int64_t head = 0; head < best.alignment.extent(0); ++head) {
    report.say();
    report.paragraph("where head {} of the cross-attention looked:", head);
    report.say("{}", render_heatmap(best.alignment.view().select(0, head), {written, letters},
                                    report.style(), {.legend = false}));
    picture.matrices.push_back({.title = fmt::format("head {}", head),
                                .values = matrix_from(best.alignment.view().select(0, head)),
                                .queries = written,
                                .keys = letters,
                                .query_title = "written",
                                .key_title = "read"});
  }
  report.record("alignment", best.alignment);
  report.draw(drawing_of(std::move(picture)));
}

void teach(Report& report) {
  report.paragraph(
      "An encoder reads a source, a decoder writes a target and looks back at every step.");
  show_architecture(report);
  show_illustration(report);
  show_training(report);
}

}  // namespace seq2seq_lesson

extern const Lesson kSeq2SeqLesson = {
    "seq2seq", "a whole model with attention: parts, shapes, a measured alignment",
    seq2seq_lesson::teach};

}  // namespace heed::learn
