// The attention of a sentence: drawn as text for a terminal, and written to files as pictures,
// JSON, NumPy arrays or plain text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/inspect/sentence.h"
#include "heed/viz/figure.h"
#include "heed/viz/terminal.h"
#include "picture_file.h"

namespace heed::cli {

using inspect::SentenceAttention;
using inspect::SentenceSettings;

// Longer sentences are summarised in blocks.
inline constexpr std::int64_t kMaxDrawnTokens = 40;

// Returns the tokens with their numbers below them.
std::string draw_tokens(const inspect::AttendedTokens& attention, const TerminalStyle& style);

// Draws one heatmap for each of `heads`, as many per row as fit, and the scale of the colours. A
// sentence of more than kMaxDrawnTokens tokens gets heatmaps of blocks, and the tokens to which its
// last token attends most.
std::string draw_heads(const inspect::AttendedTokens& attention,
                       const std::vector<std::int64_t>& heads, const TerminalStyle& style);

// Returns the indices of all heads, from 0.
std::vector<std::int64_t> all_heads(const inspect::AttendedTokens& attention);

// Returns one JSON object: the sentence, its tokens, the settings, and the weights as nested lists.
// Non-ASCII characters are escaped.
std::string to_json(const SentenceAttention& attention);

// The contents that `heed explain` can write into one file; the ending selects them.
struct ExplanationFile {
  Picture picture;                    // .png, .svg, .pdf, .html, .json
  std::function<std::string()> text;  // .txt: the heads in plain characters
  FloatView weights;                  // .npy, and the array weights of .npz
  TensorView<const bool> visible;     // for .npz, as the following
  std::span<const std::int64_t> token_ids;
};

// The endings that write_explanation() supports, for help and messages.
inline constexpr const char* kSentenceEndings =
    ".png, .svg, .pdf, .html, .json, .npy, .npz or .txt";

// Returns a line "Written: 'a.svg'".
std::string wrote(const std::filesystem::path& path);

// Throws UsageError unless `path` has one of kSentenceEndings.
void check_ending(const std::filesystem::path& path);

// Writes the file at `path` in the format of its ending, completely or not at all.
void write_explanation(const std::filesystem::path& path, const ExplanationFile& file);

// Writes a sentence: a figure of `heads` with the options of `arguments`, the explorer, to_json(),
// the weights, the arrays weights, token_ids and visible, or all heads in plain characters.
void write_sentence(const std::filesystem::path& path, const SentenceAttention& attention,
                    const std::vector<std::int64_t>& heads, const PictureArguments& arguments);

// Draws a heatmap for each of `heads`, with the tokens on both axes and `note` below.
Figure draw_figure(const inspect::AttendedTokens& attention, const std::vector<std::int64_t>& heads,
                   const std::string& note, const PictureArguments& arguments);

}  // namespace heed::cli
