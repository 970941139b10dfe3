#include "lessons/short_sequence.h"

#include "gallery/pictures.h"
#include "heed/attention/position.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "heed/nn/init.h"
#include "lessons/lesson.h"

namespace heed::learn {

namespace {

constexpr std::uint64_t kShortSequenceSeed = 0;
constexpr std::int64_t kModelDim = 64;
constexpr std::int64_t kNumHeads = 4;
constexpr std::int64_t kSeqLen = 10;
constexpr std::int64_t kPosition = 5;

AttentionParameters<float> draw_parameters(TorchGenerator& generator) {
  const auto fused = linear_init(generator, kModelDim, 3 * kModelDim, false);
  auto [query, key, value] = split_qkv(fused);
  return {std::move(query), std::move(key), std::move(value),
          linear_init(generator, kModelDim, kModelDim, false)};
}

Tensor<float> mean_of_rows(FloatView rows) {
  Tensor<float> mean({rows.extent(1)});
  for (std::int64_t column = 0; column < rows.extent(1); ++column) {
    for_each_element(rows.select(1, column), [&](float element) { mean(column) += element; });
    mean(column) /= static_cast<float>(rows.extent(0));
  }
  return mean;
}

void teach(Report& report) {
  report.paragraph(
      "{} tokens of width {}, {} heads of width {}, each position told where it stands, and a "
      "causal mask. The numbers are PyTorch's after manual_seed({}).",
      kSeqLen, kModelDim, kNumHeads, kModelDim / kNumHeads, kShortSequenceSeed);

  const ShortSequence example;
  const auto& [parameters, x, attended] = example;

  report.step("Shapes");
  report.record("input_shape", x.shape());
  report.record("out_shape", attended.out.shape());
  report.record("weights_shape", attended.weights.shape());
  report.record("parameters", parameters.num_parameters());
  report.say("  input    {}      [batch, tokens, width]", to_string(x.shape()));
  report.say("  output   {}      the same", to_string(attended.out.shape()));
  report.say("  weights  {}   [batch, heads, query, key]", to_string(attended.weights.shape()));
  report.say();
  report.paragraph("{} parameters: {} x {} for query, key and value, {} x {} for the output.",
                   parameters.num_parameters(), 3 * kModelDim, kModelDim, kModelDim, kModelDim);

  report.step("Each head looks in its own way");
  const auto rows = attended.weights.view().select(0, 0).select(1, kPosition);
  report.show("heads", fmt::format("Weights of position {}, one row a head:", kPosition), rows, 3);
  report.show("mean", "Their mean over the heads:", mean_of_rows(rows), 3);
  report.paragraph(
      "The {} positions after it have weight 0: position {} cannot see them. The rest is spread "
      "widely, as it is before training.",
      kSeqLen - 1 - kPosition, kPosition);

  report.step("The output");
  report.show("out", fmt::format("The first 8 of {} numbers at position {}:", kModelDim, kPosition),
              attended.out.view().select(1, kPosition).slice(1, 0, 8));
  report.paragraph(
      "A layer in training may also set some outputs to 0 (dropout). Where that comes after the "
      "last projection, the weights above stay the same.");
  report.draw(draw_causal_heads);
}

}  // namespace

ShortSequence::ShortSequence() {
  TorchGenerator generator(kShortSequenceSeed);
  parameters = draw_parameters(generator);
  const Tensor<float> tokens = generator.randn({1, kSeqLen, kModelDim});
  x = add_positions(tokens, sinusoidal_encoding(kSeqLen, kModelDim));
  attended = multi_head_attention(x, x, parameters, kNumHeads, {.mask = causal()});
}

extern const Lesson kShortSequenceLesson = {"short-sequence",
                                            "four heads, ten positions (PyTorch, seed 0)", teach};

}  // namespace heed::learn
