// Pictures that explain attention, by name. Lessons draw them too.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "heed/viz/figure.h"

namespace heed::learn {

// The origin of a picture's numbers.
enum class Origin {
  kComputed,  // computed by heed from inputs that PyTorch draws equally: it gets the same weights
  kIllustrative,  // invented
  kOwn,           // computed by heed from its own inputs
  kMeasured,      // times measured on a machine that the picture names
};

struct GalleryPicture {
  std::string_view name;   // of its file
  std::string_view title;  // in the index
  std::string_view shows;  // what to look for
  Origin origin;
  Figure (*draw)(Theme theme);
};

// Returns every picture in the order of the index.
std::span<const GalleryPicture> all_pictures();

// Each function has its own file; pictures.cc lists them.
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

// Draws the times of a table in docs/performance.md.
Figure draw_time_against_length(Theme theme);
// Draws the times of a report of `heed bench linear --json`: the median of each method and mask,
// for the first number of heads, dimensions and threads in the report. Throws std::runtime_error
// when `report` is not such a report.
Figure draw_time_against_length(const nlohmann::json& report, Theme theme);
Figure draw_learning_curve(Theme theme);

// The beginning of both pages, by which heed recognises its own galleries.
inline constexpr const char* kGalleryMark = "generator: heed gallery";

// Returns the file name of a picture: its name, "-dark" for the dark version, and the format's
// ending.
std::string picture_file(const GalleryPicture& picture, Theme theme, const std::string& ending);

// Returns an HTML page that shows the dark pictures, if any, on dark screens. It has no scripts and
// requests nothing but the picture files.
std::string html_index(std::span<const GalleryPicture> pictures, const std::string& ending,
                       bool has_dark);

// Returns the index as Markdown.
std::string markdown_index(std::span<const GalleryPicture> pictures, const std::string& ending,
                           bool has_dark);

}  // namespace heed::learn
