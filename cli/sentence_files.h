// Writes the attention of a sentence to files: pictures, JSON, NumPy arrays, plain text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/inspect/sentence.h"
#include "picture_file.h"

namespace heed::cli {

using inspect::SentenceAttention;
using inspect::SentenceSettings;

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

}  // namespace heed::cli
