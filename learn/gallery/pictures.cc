#include "gallery/pictures.h"

#include <array>

namespace heed::learn {

std::span<const GalleryPicture> all_pictures() {
  using enum Origin;
  static const std::array pictures{
      GalleryPicture{"bleu-against-length", "Translation quality against sentence length",
                     "A fixed-size summary of the source loses long sentences; looking back does "
                     "not.",
                     kIllustrative, draw_bleu_against_length},
      GalleryPicture{"translation-alignment", "Attention weights in translation",
                     "Nearly a diagonal: the words of two languages in nearly the same order. "
                     "\"était assis\" both look at \"sat\".",
                     kIllustrative, draw_translation_alignment},
      GalleryPicture{"constructed-heads", "Four heads, four habits",
                     "Neighbours, nouns, repeated structure, the full stop: each has a shape that "
                     "one learns to see.",
                     kIllustrative, draw_constructed_heads},
      GalleryPicture{"causal-heads", "Multi-head attention patterns (causal)",
                     "Before training every head spreads its weight; the first row has nothing "
                     "else to look at than itself.",
                     kComputed, draw_causal_heads},
      GalleryPicture{"weights-of-four", "Attention weights of four tokens",
                     "Each row sums to 1; the darkest cell is the best match of query and key.",
                     kComputed, draw_weights_of_four},
      GalleryPicture{"bidirectional-and-causal", "Bidirectional and causal attention",
                     "The same queries and keys: what the mask hides is hatched, and the rest of "
                     "the row shares the whole.",
                     kComputed, draw_bidirectional_and_causal},
      GalleryPicture{"eight-heads", "Eight heads over ten tokens",
                     "Eight patterns of one sequence. Nothing was trained: differences are chance.",
                     kComputed, draw_eight_heads},
      GalleryPicture{"one-and-many-heads", "One head, and the mean of four",
                     "A mean of heads is flatter than each of them: it hides what single heads do.",
                     kComputed, draw_one_and_many_heads},
      GalleryPicture{"temperatures", "Weights at three temperatures",
                     "The order within a row never changes; only how much the first is preferred.",
                     kComputed, draw_temperatures},
      GalleryPicture{"temperature-curves", "One query from cold to hot",
                     "To the left one key takes all; to the right all keys are equal.", kComputed,
                     draw_temperature_curves},
      GalleryPicture{"no-masking", "Attention pattern (no masking)",
                     "Every position looks at every other, later ones too.", kComputed,
                     draw_no_masking},
      GalleryPicture{"with-causal-masking", "Attention pattern with causal masking",
                     "The same scores without the future: the last row has not changed.", kComputed,
                     draw_with_causal_masking},
      GalleryPicture{"mask-digits", "The causal mask as ones and zeros",
                     "1 is masked here. Read the legend before the digits: others write it the "
                     "other way round.",
                     kComputed, draw_mask_digits},
      GalleryPicture{"causal-mask", "The causal mask",
                     "Black is masked. Read the legend before the colours: others write it the "
                     "other way round.",
                     kComputed, draw_causal_mask},
      GalleryPicture{"padding-mask", "Padding masks of two sentences",
                     "Whole columns: nobody looks at padding.", kComputed, draw_padding_mask},
      GalleryPicture{"eight-causal-heads", "Attention patterns across different heads",
                     "Each head has its own scale: compare shapes, not colours.", kComputed,
                     draw_eight_causal_heads},
      GalleryPicture{"sentence-head", "The cat sat on the mat",
                     "Words instead of positions. A model that is not trained knows no cats.",
                     kComputed, draw_sentence_head},
      GalleryPicture{"running-example", "I love AI !",
                     "The weights of the lesson running-example, drawn.", kComputed,
                     draw_running_example},
      GalleryPicture{"positions-64", "Sinusoidal positional encoding, 64 dimensions",
                     "Fast waves at the top, slow ones at the bottom.", kComputed,
                     draw_positions_64},
      GalleryPicture{"positions-128", "Sinusoidal positional encoding, 128 dimensions",
                     "Each position is a column, and no two are alike.", kComputed,
                     draw_positions_128},
      GalleryPicture{
          "position-dimensions", "Single dimensions of the encoding",
          "A sine and a cosine of one frequency; the frequency falls with the dimension.",
          kComputed, draw_position_dimensions},
      GalleryPicture{"layers-and-heads", "Layers and heads at a glance",
                     "Where to look first in a large model: rows are layers, columns heads.", kOwn,
                     draw_layers_and_heads},
      GalleryPicture{"difference", "The difference of two heads",
                     "Blue: more attention in one head; red: more in the other.", kOwn,
                     draw_difference},
      GalleryPicture{"first-key-hidden", "An attention sink, and what it hides",
                     "A key that takes most of every row leaves no colours for the others.", kOwn,
                     draw_first_key_hidden},
      GalleryPicture{"head-entropy", "How widely each head looks",
                     "Entropy of the rows, averaged: 0 is one key, ln n is all alike.", kOwn,
                     draw_head_entropy},
      GalleryPicture{"operations", "Operations against length",
                     "Both axes are logarithmic: the slope is the power. The lines cross where the "
                     "length equals the width.",
                     kOwn, draw_operations},
      GalleryPicture{"time-against-length", "Time against length",
                     "Slope 2 is quadratic, slope 1 linear: what the operations promise, a clock "
                     "confirms.",
                     kMeasured, [](Theme theme) { return draw_time_against_length(theme); }},
      GalleryPicture{"learning-curve", "A learning curve",
                     "Without positions the layer cannot tell which symbol is next: its loss falls "
                     "little below a guess among the five that it saw, ln 5 = 1.61.",
                     kOwn, draw_learning_curve}};
  return pictures;
}

}  // namespace heed::learn
