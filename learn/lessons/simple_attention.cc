#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"

namespace heed::learn {

namespace simple_attention_lesson {

using reference::Keep;

constexpr std::uint64_t kSeed = 42;

void teach(Report& report) {
  report.say("    attention(Q, K, V) = softmax(Q Kᵀ / √dₖ) V");
  report.say();
  report.paragraph("With the Q, K and V of torch.randn(1, 4, 8) three times after manual_seed({}).",
                   kSeed);
  const Shape shape{1, 4, 8};
  TorchGenerator generator(kSeed);
  const Tensor<float> query = generator.randn(shape);
  const Tensor<float> key = generator.randn(shape);
  const Tensor<float> value = generator.randn(shape);
  const auto attend = [&](const Mask& mask) {
    return reference::attention(query.view().to_rank(4), key.view().to_rank(4),
                                value.view().to_rank(4), {.mask = mask},
                                Keep::kScores | Keep::kWeights);
  };
  const auto full = attend({});
  const auto masked = attend(causal());

  report.step("Everyone looks at everyone");
  report.show("scores", "Q Kᵀ / √8:", full.scores);
  report.show("weights", "Weights:", full.weights);
  report.show_row_sums("row_sums", full.weights);
  report.show("out", "Output:", full.out);
  report.record("input_shape", shape);
  report.record("weights_shape", Shape{1, 4, 4});
  report.record("out_shape", Shape{1, 4, 8});
  report.paragraph(
      "Row 0 gives most to column 1, because query 0 and key 1 have the largest dot product of "
      "that row.");

  report.step("No look into the future");
  report.show("causal_weights", "Weights under a causal mask:", masked.weights);
  report.show_row_sums("causal_row_sums", masked.weights);
  report.show("causal_out", "Output:", masked.out);
  report.paragraph(
      "Row 1 gave {:.4f} and {:.4f} to columns 0 and 1. Now they share the whole in the same "
      "proportion. The last row sees everything, and so nothing changed there.",
      full.weights(0, 0, 1, 0), full.weights(0, 0, 1, 1));
  report.draw(drawing_of(
      {.title = "Four tokens, with and without the future",
       .matrices = {
           {"every key is seen", matrix_from(full.weights.view())},
           {.title = "causal",
            .values = matrix_from(masked.weights.view()),
            .visible = materialize_allow(causal(), {.q_len = 4, .kv_len = 4}).reshaped({4, 4})}}}));
}

}  // namespace simple_attention_lesson

extern const Lesson kSimpleAttentionLesson = {"simple-attention",
                                              "full and causal attention (PyTorch, seed 42)",
                                              simple_attention_lesson::teach};

}  // namespace heed::learn
