#include "gallery/pictures.h"
#include "heed/attention/reference.h"
#include "heed/nn/functional.h"
#include "heed/nn/init.h"
#include "heed/text/word_tokenizer.h"
#include "lessons/lesson.h"

namespace heed::learn {

namespace running_example_lesson {

using reference::Keep;

constexpr std::uint64_t kSeed = 0;
constexpr std::int64_t kEmbedDim = 4;

const std::vector<std::string>& words() {
  static const std::vector<std::string> words(kVocab.begin(), kVocab.end());
  return words;
}

void count_parameters(Report& report, std::int64_t in_table, std::int64_t in_attention) {
  report.step("What can be learned");
  report.record("embedding_parameters", in_table);
  report.record("attention_parameters", in_attention);
  report.record("parameters", in_table + in_attention);
  report.say("  embedding        {0} words x {1} numbers    {2:3}", kVocab.size(), kEmbedDim,
             in_table);
  report.say("  Wq Wk Wv Wo      4 matrices of {0} x {0}     {1:3}", kEmbedDim, in_attention);
  report.say("  together                                {:3}", in_table + in_attention);
}

// Shows the computation with one head step by step. Returns weights · V.
Tensor<float> show_steps(Report& report, FloatView x,
                         const AttentionParameters<float>& parameters) {
  report.step("Project");
  report.paragraph(
      "Four matrices are drawn after the embedding. PyTorch's Linear multiplies by the transposed "
      "matrix.");
  report.say();
  report.show("query_weight", "Wq:", parameters.query.weight);
  report.show("key_weight", "Wk:", parameters.key.weight);
  report.show("value_weight", "Wv:", parameters.value.weight);
  const auto project = [x](const LinearParameters<float>& projection) {
    const Tensor<float> projected = linear(x, projection);
    return to_tensor(projected.view().to_rank(4));
  };
  const Tensor<float> query = project(parameters.query);
  const Tensor<float> key = project(parameters.key);
  const Tensor<float> value = project(parameters.value);
  report.show("query", "Q = x Wqᵀ, what each word looks for:", query, 4, words());
  report.show("key", "K = x Wkᵀ, how it can be found:", key, 4, words());
  report.show("value", "V = x Wvᵀ, what it gives:", value, 4, words());

  report.step("Compare, hide the future, weigh");
  const auto result = reference::attention(query, key, value, {.mask = causal()},
                                           Keep::kScores | Keep::kMasked | Keep::kWeights);
  report.show("scores", "Q Kᵀ / √4:", result.scores, 4, words());
  report.show("masked", "The same, above the diagonal -inf:", result.masked, 4, words());
  report.show("weights", "softmax, row: who looks, column: who is looked at:", result.weights, 4,
              words());
  report.show_row_sums("row_sums", result.weights);
  report.paragraph(
      "Whatever the numbers, the first row is 1 0 0 0: \"I\" has nobody else to look at. The "
      "others mean nothing yet, since nothing was trained.");
  return to_tensor(result.out.view());
}

void teach(Report& report) {
  report.paragraph(
      "\"I love AI !\" through an embedding and one head of causal attention, with the numbers "
      "that PyTorch draws after manual_seed({}).",
      kSeed);

  TorchGenerator generator(kSeed);
  const Tensor<float> table =
      embedding_weight(generator, static_cast<std::int64_t>(kVocab.size()), kEmbedDim);
  const auto parameters = attention_init(generator, kEmbedDim, kEmbedDim, false);

  report.step("Words to ids to vectors");
  const Tensor<std::int64_t> sentence = to_ids(kVocab);
  const auto ids = sentence.view().to_rank(2);
  const Tensor<float> x = embedding(ids, table);
  report.record("ids",
                std::vector<std::int64_t>(sentence.elements().begin(), sentence.elements().end()));
  report.paragraph("Token ids {}: 0 to {}, since the vocabulary is just this sentence.",
                   to_string(ids.shape()), sentence.num_elements() - 1);
  report.show("x", "x, the row of the table for each id:", x, 4, words());

  const Tensor<float> mixed = show_steps(report, x, parameters);

  report.step("The output");
  report.show("mixed", "weights V, the mean of the values with these weights:", mixed, 4, words());
  report.show("out_weight", "Wo:", parameters.out.weight);
  const auto attended = multi_head_attention(x, x, parameters, 1, {.mask = causal()});
  report.show("out", "weights V Woᵀ:", attended.out, 4, words());
  report.record("ids_shape", ids.shape());
  report.record("x_shape", x.shape());
  report.record("out_shape", attended.out.shape());
  report.paragraph(
      "Shapes, [batch, tokens, width]: x {}, output {}: the same, so layers of attention can be "
      "stacked.",
      to_string(x.shape()), to_string(attended.out.shape()));

  count_parameters(report, table.num_elements(), parameters.num_parameters());
  report.draw(draw_running_example);
}

}  // namespace running_example_lesson

extern const Lesson kRunningExampleLesson = {"running-example",
                                             "\"I love AI !\" from ids to output (PyTorch, seed 0)",
                                             running_example_lesson::teach};

}  // namespace heed::learn
