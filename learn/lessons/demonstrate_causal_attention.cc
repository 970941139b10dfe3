#include <sstream>

#include "demonstrate.h"
#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace demonstrate_causal_attention_lesson {

constexpr std::int64_t kSeqLen = 6;
constexpr std::int64_t kHeadDim = 8;

void teach(Report& report) {
  set_seed(0);
  std::ostringstream text;
  demonstrate_causal_attention(text, kSeqLen);
  report.say("{}", text.str());
  report.paragraph(
      "What to notice: the mask decides who may be looked at, the scores decide how much. Position "
      "0 has nobody but itself, so whatever its score, its weight is 1.");

  set_seed(0);
  const Shape shape{1, 1, kSeqLen, kHeadDim};
  const auto query = default_generator().randn(shape);
  const auto key = default_generator().randn(shape);
  const auto value = default_generator().randn(shape);
  const auto keep = reference::Keep::kWeights;
  const auto full = reference::attention(query, key, value, {}, keep);
  const auto masked = reference::attention(query, key, value, {.mask = causal()}, keep);
  report.record("full_weights", matrix_of(full.weights));
  report.record("causal_weights", matrix_of(masked.weights));
  report.record("mask", nlohmann::json(to_lines(causal(), {.q_len = kSeqLen, .kv_len = kSeqLen},
                                                kBlockGlyphs)));
  report.draw(drawing_of(
      {.title = "Six positions, with and without the future",
       .matrices = {{"every key is seen", matrix_from(full.weights.view())},
                    {.title = "causal",
                     .values = matrix_from(masked.weights.view()),
                     .visible = materialize_allow(causal(), {.q_len = kSeqLen, .kv_len = kSeqLen})
                                    .reshaped({kSeqLen, kSeqLen})}}}));
}

}  // namespace demonstrate_causal_attention_lesson

extern const Lesson kDemonstrateCausalAttentionLesson = {
    "demonstrate-causal-attention", "a mask hides the future: row 0 sees itself",
    demonstrate_causal_attention_lesson::teach};

}  // namespace heed::learn
