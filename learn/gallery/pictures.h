// Pictures that explain attention, each under its name. Lessons draw them too.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "heed/viz/figure.h"

namespace heed::learn {

// Where the numbers of a picture come from.
enum class Origin {
  kComputed,      // by heed, from inputs that PyTorch draws alike: its weights are the same
  kIllustrative,  // they are made up
  kOwn,           // by heed, from inputs of its own
  kMeasured,      // times of a machine that the picture names
};

struct GalleryPicture {
  std::string_view name;   // of its file
  std::string_view title;  // in the index
  std::string_view shows;  // what to look for
  Origin origin;
  Figure (*draw)(Theme theme);
};

// Every picture, in the order of the index.
std::span<const GalleryPicture> all_pictures();

// One file each; pictures.cc lists them.
Figure draw_bleu_against_length(Theme theme);
Figure draw_translation_alignment(Theme theme);
Figure draw_constructed_heads(Theme theme);

Figure draw_causal_heads(Theme theme);
Figure draw_weights_of_four(Theme theme);
Figure draw_bidirectional_and_causal(Theme theme);
Figure draw_eight_heads(Theme theme);
Figure draw_one_and_many_heads(Theme theme);
Figure draw_no_masking(Theme theme);
Figure draw_with_causal_masking(Theme theme);
Figure draw_eight_causal_heads(Theme theme);
Figure draw_sentence_head(Theme theme);
Figure draw_running_example(Theme theme);

Figure draw_causal_mask(Theme theme);
Figure draw_mask_digits(Theme theme);
Figure draw_padding_mask(Theme theme);

Figure draw_positions_64(Theme theme);
Figure draw_positions_128(Theme theme);
Figure draw_position_dimensions(Theme theme);

Figure draw_temperatures(Theme theme);
Figure draw_temperature_curves(Theme theme);

Figure draw_layers_and_heads(Theme theme);
Figure draw_difference(Theme theme);
Figure draw_first_key_hidden(Theme theme);
Figure draw_head_entropy(Theme theme);
Figure draw_operations(Theme theme);

// The times of a table of docs/performance.md.
Figure draw_time_against_length(Theme theme);
// The same of what `heed bench linear --json` printed: the median of each method and mask, of the
// first number of heads, of dimensions and of threads in the report. Throws std::runtime_error when
// it is no such report.
Figure draw_time_against_length(const nlohmann::json& report, Theme theme);
Figure draw_learning_curve(Theme theme);

}  // namespace heed::learn
