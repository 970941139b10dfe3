// The attention of a sentence in files: pictures, JSON, NumPy arrays, plain text.
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

// One JSON object: the sentence, its tokens, the settings, and the weights as nested lists. Only
// ASCII; other characters are escaped.
std::string to_json(const SentenceAttention& attention);

// What `heed explain` can write into one file; the ending chooses.
struct ExplanationFile {
  Picture picture;                    // .png, .svg, .pdf, .html, .json
  std::function<std::string()> text;  // .txt: the heads in plain characters
  FloatView weights;                  // .npy, and the array weights of .npz
  TensorView<const bool> visible;     // of .npz, as what follows
  std::span<const std::int64_t> token_ids;
};

// The endings that write_explanation knows, for help and messages.
inline constexpr const char* kSentenceEndings =
    ".png, .svg, .pdf, .html, .json, .npy, .npz or .txt";

// "Written: 'a.svg'", a line.
std::string wrote(const std::filesystem::path& path);

// Throws UsageError unless `path` ends as one of kSentenceEndings.
void check_ending(const std::filesystem::path& path);

// Writes the file at `path` in the format that its ending names, whole or not at all.
void write_explanation(const std::filesystem::path& path, const ExplanationFile& file);

// The same of a sentence: a figure of `heads` as `arguments` say; the explorer; to_json(); the
// weights; the arrays weights, token_ids and visible; the picture of all heads in plain characters.
void write_sentence(const std::filesystem::path& path, const SentenceAttention& attention,
                    const std::vector<std::int64_t>& heads, const PictureArguments& arguments);

}  // namespace heed::cli
