#include <sstream>
#include <utility>

#include "demonstrate.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"

namespace heed::learn {

namespace demonstrate_attention_lesson {

constexpr std::int64_t kSeqLen = 6;
constexpr std::int64_t kEmbedDim = 32;
constexpr std::int64_t kNumHeads = 4;

void teach(Report& report) {
  set_seed(0);
  std::ostringstream text;
  demonstrate_attention(text, kSeqLen, kEmbedDim, kNumHeads);
  report.say("{}", text.str());
  report.paragraph(
      "What to notice: a sequence goes in and a sequence of the same shape comes out. In between, "
      "each head fills a table of its own, and each row of it says how one position shares out its "
      "attention: positive numbers that add up to 1.");

  set_seed(0);
  const auto parameters = attention_init(default_generator(), kEmbedDim, kEmbedDim);
  const auto x = default_generator().randn({1, kSeqLen, kEmbedDim});
  const auto attended = multi_head_attention(x, x, parameters, kNumHeads);
  report.record("weights", attended.weights);
  report.record("out", attended.out);
  MatricesPicture picture{.title = "Four heads over six positions", .columns = 2};
  for (std::int64_t head = 0; head < kNumHeads; ++head) {
    picture.matrices.push_back({fmt::format("head {}", head),
                                matrix_from(attended.weights.view().select(0, 0).select(0, head))});
  }
  report.draw(drawing_of(std::move(picture)));
}

}  // namespace demonstrate_attention_lesson

extern const Lesson kDemonstrateAttentionLesson = {"demonstrate-attention",
                                                   "multi-head attention from outside",
                                                   demonstrate_attention_lesson::teach};

}  // namespace heed::learn
