// Pictures of attention weights that PyTorch reproduces.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gallery/pictures.h"
#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "heed/nn/init.h"
#include "heed/text/word_tokenizer.h"
#include "heed/viz/attention_figure.h"
#include "lessons/one_and_many.h"
#include "lessons/short_sequence.h"

namespace heed::learn {

namespace {

constexpr const char* kQueryPosition = "Query Position (attending FROM)";
constexpr const char* kKeyPosition = "Key Position (attending TO)";
constexpr const char* kSeedZero = "PyTorch's numbers after manual_seed(0).";

const std::vector<std::string> kWords{"The", "cat", "sat", "on", "the", "mat"};

std::vector<std::string> numbered_titles(const std::string& before, std::int64_t count,
                                         std::int64_t first = 0) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(before + std::to_string(first + i));
  return names;
}

// Returns the weights [seq_len, seq_len] of a query and a key, each drawn by randn(1, seq_len, 8).
Tensor<float> drawn_weights(std::uint64_t seed, std::int64_t seq_len, const Mask& mask) {
  TorchGenerator generator(seed);
  const auto query = generator.randn({1, 1, seq_len, 8});
  const auto key = generator.randn({1, 1, seq_len, 8});
  auto result = reference::attention(query, key, key, {.mask = mask}, reference::Keep::kWeights);
  return std::move(result.weights).reshaped({seq_len, seq_len});
}

// Returns [num_heads, seq_len, seq_len], the weights of multi-head self-attention on randn(batch,
// seq_len, width).
Tensor<float> head_weights(std::uint64_t seed, const Shape& input, std::int64_t num_heads,
                           const Mask& mask) {
  TorchGenerator generator(seed);
  const auto parameters = attention_init(generator, input[-1], input[-1]);
  const auto x = generator.randn(input);
  const auto attended = multi_head_attention(x, x, parameters, num_heads, {.mask = mask});
  return to_tensor(attended.weights.view().select(0, 0));
}

Tensor<bool> causal_square(std::int64_t seq_len) {
  return materialize_allow(causal(), {.q_len = seq_len, .kv_len = seq_len})
      .reshaped({seq_len, seq_len});
}

// Returns two matrices of one size as one tensor [2, rows, columns].
Tensor<float> stacked(const Tensor<float>& first, const Tensor<float>& second) {
  Tensor<float> both({2, first.extent(0), first.extent(1)});
  std::copy_n(first.data(), first.num_elements(), both.data());
  std::copy_n(second.data(), second.num_elements(), both.data() + first.num_elements());
  return both;
}

// The numbers of the last pictures, drawn after torch.manual_seed(42): Q, K and V of an example
// that is not shown, a layer, and the layer's input.
struct SeededLayer {
  SeededLayer() {
    for (int i = 0; i < 3; ++i) generator.randn({1, 4, 8});
    layer = attention_init(generator, kEmbedDim, kEmbedDim);
    x = generator.randn({2, 10, kEmbedDim});
  }

  // Returns [num_heads, seq_len, seq_len], the self-attention weights of the first sequence.
  Tensor<float> weights(const Tensor<float>& sequences) const {
    constexpr std::int64_t kNumHeads = 8;
    const auto attended =
        multi_head_attention(sequences, sequences, layer, kNumHeads, {.mask = causal()});
    return to_tensor(attended.weights.view().select(0, 0));
  }

  static constexpr std::int64_t kEmbedDim = 128;

  TorchGenerator generator{42};
  AttentionParameters<float> layer;
  Tensor<float> x;
};

constexpr const char* kSeededLayerNote =
    "PyTorch's numbers after manual_seed(42) and three randn(1, 4, 8), of four linear maps with "
    "biases.";

Figure draw_pattern(const char* title, const Mask& mask, Theme theme) {
  const auto names = numbered_titles("Pos ", 4);
  const auto visible = materialize_allow(mask, {.q_len = 4, .kv_len = 4}).reshaped({4, 4});
  return attention_figure(drawn_weights(42, 4, mask), {.title = title,
                                                       .queries = names,
                                                       .keys = names,
                                                       .query_title = kQueryPosition,
                                                       .key_title = kKeyPosition,
                                                       .visible = visible,
                                                       .color_map = ColorMap::kYlOrRd,
                                                       .decimals = 3,
                                                       .theme = theme});
}

}  // namespace

Figure draw_causal_heads(Theme theme) {
  const ShortSequence example;
  const auto titles = numbered_titles("Head ", 4);
  const auto visible = causal_square(10);
  return attention_figure(example.attended.weights.view().select(0, 0),
                          {.title = "Multi-Head Attention Patterns (causal)",
                           .query_title = "Query position",
                           .key_title = "Key position",
                           .panels = titles,
                           .visible = visible,
                           .color_map = ColorMap::kBlues,
                           .scale_max = 1.0F,
                           .decimals = -1,
                           .theme = theme});
}

Figure draw_weights_of_four(Theme theme) {
  return attention_figure(drawn_weights(0, 4, {}), {.title = "Attention weights of four tokens",
                                                    .note = kSeedZero,
                                                    .query_title = "query position",
                                                    .key_title = "key position",
                                                    .color_map = ColorMap::kBlues,
                                                    .theme = theme});
}

Figure draw_bidirectional_and_causal(Theme theme) {
  const std::vector<std::string> titles{"Bidirectional", "Causal"};
  const auto both = stacked(drawn_weights(0, 6, {}), drawn_weights(0, 6, causal()));
  Tensor<bool> visible({2, 6, 6});
  const auto triangle = causal_square(6);
  for (std::int64_t i = 0; i < 36; ++i) {
    visible.data()[i] = true;
    visible.data()[36 + i] = triangle.data()[i];
  }
  return attention_figure(both, {.title = "Bidirectional and causal attention",
                                 .note = kSeedZero,
                                 .queries = kWords,
                                 .keys = kWords,
                                 .panels = titles,
                                 .visible = visible,
                                 .color_map = ColorMap::kBlues,
                                 .theme = theme});
}

Figure draw_eight_heads(Theme theme) {
  const auto titles = numbered_titles("Head ", 8);
  return attention_figure(head_weights(0, {2, 10, 64}, 8, {}),
                          {.title = "Eight heads over ten tokens",
                           .note = kSeedZero,
                           .query_title = "query position",
                           .key_title = "key position",
                           .panels = titles,
                           .color_map = ColorMap::kBlues,
                           .theme = theme});
}

Figure draw_one_and_many_heads(Theme theme) {
  const OneAndManyHeads example;
  const auto single = to_tensor(example.one.weights.view().select(0, 0).select(0, 0));
  const std::vector<std::string> titles{"One head of 64 dimensions", "Mean of four heads of 8"};
  return attention_figure(stacked(single, example.mean),
                          {.title = "One head, and the mean of four",
                           .note = "PyTorch's numbers after manual_seed(42) and three "
                                   "randn(1, 4, 8) before the layers.",
                           .query_title = "query position",
                           .key_title = "key position",
                           .panels = titles,
                           .color_map = ColorMap::kBlues,
                           .theme = theme});
}

Figure draw_no_masking(Theme theme) {
  return draw_pattern("Attention Pattern (No Masking)", {}, theme);
}

Figure draw_with_causal_masking(Theme theme) {
  return draw_pattern("Attention Pattern WITH Causal Masking", causal(), theme);
}

Figure draw_eight_causal_heads(Theme theme) {
  const auto titles = numbered_titles("Head ", 8, 1);
  const auto visible = causal_square(10);
  const SeededLayer layer;
  return attention_figure(layer.weights(layer.x),
                          {.title = "Attention Patterns Across Different Heads",
                           .note = kSeededLayerNote,
                           .query_title = "Query Position",
                           .key_title = "Key Position",
                           .panels = titles,
                           .visible = visible,
                           .color_map = ColorMap::kYlOrRd,
                           .scales_panels_apart = true,
                           .theme = theme});
}

Figure draw_sentence_head(Theme theme) {
  const std::string text = "The cat sat on the mat";
  const text::WordTokenizer tokenizer(text);
  const auto ids = tokenizer.ids(text);
  const auto words = tokenizer.labels(ids);
  const auto length = static_cast<std::int64_t>(ids.size());
  SeededLayer layer;
  const auto table =
      embedding_weight(layer.generator, tokenizer.vocab_size(), SeededLayer::kEmbedDim);
  const auto weights = layer.weights(embedding({ids.data(), Shape{1, length}}, table));
  const auto visible = causal_square(length);
  return attention_figure(weights.view().select(0, 0),
                          {.title = fmt::format("Attention Pattern for: \"{}\" (Head 1)", text),
                           .note = kSeededLayerNote,
                           .queries = words,
                           .keys = words,
                           .query_title = "Attending FROM",
                           .key_title = "Attending TO",
                           .visible = visible,
                           .color_map = ColorMap::kYlOrRd,
                           .theme = theme});
}

Figure draw_running_example(Theme theme) {
  const std::vector<std::string> words{"I", "love", "AI", "!"};
  TorchGenerator generator(0);
  const auto x = embedding_weight(generator, 4, 4).reshaped({1, 4, 4});
  const auto parameters = attention_init(generator, 4, 4, false);
  const auto weights = multi_head_attention(x, x, parameters, 1, {.mask = causal()}).weights;
  const auto visible = causal_square(4);
  return attention_figure(weights.view().select(0, 0).select(0, 0),
                          {.title = "Attention on \"I love AI !\"",
                           .note = kSeedZero,
                           .queries = words,
                           .keys = words,
                           .visible = visible,
                           .color_map = ColorMap::kBlues,
                           .decimals = 4,
                           .theme = theme});
}

}  // namespace heed::learn
