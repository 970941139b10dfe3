// Pictures with invented numbers. Each picture says so.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gallery/pictures.h"
#include "heed/viz/attention_figure.h"
#include "heed/viz/chart.h"

namespace heed::learn {

namespace {

constexpr const char* kIllustrativeNote =
    "Illustrative: these numbers are made up; nothing was measured or trained.";

const std::vector<std::string> kPaddedSentence{"The", "cat", "sat", "on",
                                               "the", "mat", ".",   "<pad>"};
constexpr std::int64_t kPaddedLength = 8;

Tensor<float> diagonal(float on, float beside) {
  Tensor<float> head({kPaddedLength, kPaddedLength});
  for (std::int64_t i = 0; i < kPaddedLength; ++i) {
    head(i, i) = on;
    if (i > 0) head(i, i - 1) = beside;
    if (i + 1 < kPaddedLength) head(i, i + 1) = beside;
  }
  return head;
}

Tensor<float> with_rows_of_sum_one(Tensor<float> head) {
  for (std::int64_t row = 0; row < kPaddedLength; ++row) {
    float sum = 0;
    for (std::int64_t key = 0; key < kPaddedLength; ++key) sum += head(row, key);
    for (std::int64_t key = 0; key < kPaddedLength; ++key) head(row, key) /= sum;
  }
  return head;
}

Tensor<float> structural() {
  Tensor<float> head = diagonal(0.5F, 0);
  head(0, 4) = head(4, 0) = 0.5F;
  head(1, 5) = head(5, 1) = 0.25F;
  return head;
}

// Returns a matrix whose rows are all equal.
Tensor<float> columns(std::initializer_list<std::int64_t> keys) {
  Tensor<float> head({kPaddedLength, kPaddedLength});
  for (std::int64_t row = 0; row < kPaddedLength; ++row) {
    for (const std::int64_t key : keys) head(row, key) = 1 / static_cast<float>(keys.size());
  }
  return head;
}

}  // namespace

Figure draw_bleu_against_length(Theme theme) {
  const std::vector<double> lengths{10, 20, 30, 40, 50, 60};
  const std::array curves{Curve{"Without Attention", lengths, {35, 32, 28, 22, 16, 12}, true},
                          Curve{"With Attention", lengths, {38, 37, 36, 35, 34, 33}, true}};
  return curves_figure(curves, {.title = "Translation Quality vs Sentence Length",
                                .note = kIllustrativeNote,
                                .x_title = "Source Sentence Length (words)",
                                .y_title = "BLEU Score (0 to 100)",
                                .theme = theme});
}

Figure draw_translation_alignment(Theme theme) {
  const std::vector<std::string> source{"The", "cat", "sat", "on", "the", "mat", "."};
  const std::vector<std::string> target{"Le", "chat", "était", "assis", "sur", "le", "tapis", "."};
  const Tensor<float> weights({8, 7}, {0.8F, 0.1F, 0.0F, 0.0F, 0.1F, 0.0F, 0.0F,    //
                                       0.1F, 0.8F, 0.0F, 0.0F, 0.0F, 0.1F, 0.0F,    //
                                       0.0F, 0.1F, 0.7F, 0.1F, 0.0F, 0.0F, 0.1F,    //
                                       0.0F, 0.1F, 0.7F, 0.1F, 0.0F, 0.0F, 0.1F,    //
                                       0.0F, 0.0F, 0.0F, 0.8F, 0.1F, 0.0F, 0.1F,    //
                                       0.1F, 0.0F, 0.0F, 0.0F, 0.8F, 0.0F, 0.1F,    //
                                       0.0F, 0.1F, 0.0F, 0.0F, 0.0F, 0.8F, 0.1F,    //
                                       0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 1.0F});  //
  return attention_figure(weights, {.title = "Attention Weights in Translation",
                                    .note = kIllustrativeNote,
                                    .queries = target,
                                    .keys = source,
                                    .query_title = "Target (French)",
                                    .key_title = "Source (English)",
                                    .color_map = ColorMap::kBlues,
                                    .decimals = 1,
                                    .theme = theme});
}

Figure draw_constructed_heads(Theme theme) {
  const std::vector<std::string> titles{"Head: Adjacent Words", "Head: Nouns", "Head: Structural",
                                        "Head: Punctuation"};
  const std::array heads{with_rows_of_sum_one(diagonal(0.4F, 0.3F)), columns({1, 5}),
                         with_rows_of_sum_one(structural()), columns({6})};
  Tensor<float> weights({4, kPaddedLength, kPaddedLength});
  float* out = weights.data();
  for (const Tensor<float>& head : heads) {
    const auto elements = head.elements();
    out = std::copy(elements.begin(), elements.end(), out);
  }
  return attention_figure(weights, {.title = "What attention heads may look for",
                                    .note = kIllustrativeNote,
                                    .queries = kPaddedSentence,
                                    .keys = kPaddedSentence,
                                    .query_title = "",
                                    .key_title = "",
                                    .panels = titles,
                                    .color_map = ColorMap::kBlues,
                                    .scale_max = 1.0F,
                                    .decimals = -1,
                                    .theme = theme});
}

}  // namespace heed::learn
