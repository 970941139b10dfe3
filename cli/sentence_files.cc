#include "sentence_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "heed/inspect/explorer.h"
#include "heed/viz/terminal.h"
#include "io/npy_stream.h"
#include "output_files.h"
#include "verbs.h"

namespace heed::cli {

namespace {

// Returns the weights of the chosen heads, [heads, q_len, kv_len].
Tensor<float> chosen(const inspect::AttendedTokens& attention,
                     const std::vector<std::int64_t>& heads) {
  const std::int64_t num_tokens = attention.num_tokens();
  auto weights = Tensor<float>::uninitialized(
      {static_cast<std::int64_t>(heads.size()), num_tokens, num_tokens});
  float* out = weights.data();
  for (const std::int64_t head : heads) {
    const auto matrix = attention.weights.view().select(0, head).elements();
    out = std::copy(matrix.begin(), matrix.end(), out);
  }
  return weights;
}

}  // namespace

Figure draw_figure(const inspect::AttendedTokens& attention, const std::vector<std::int64_t>& heads,
                   const std::string& note, const PictureArguments& arguments) {
  std::vector<std::string> titles;
  titles.reserve(heads.size());
  for (const std::int64_t head : heads) titles.push_back(fmt::format("Head {}", head));
  AttentionFigureOptions options = figure_options(arguments);
  options.title = headline(attention.text);
  options.note = note;
  options.queries = attention.labels;
  options.keys = attention.labels;
  options.panels = titles;
  options.visible = attention.visible;
  return attention_figure(chosen(attention, heads), options);
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kOption = "--out";

void write_arrays(const ExplanationFile& file, const io::ByteSink& sink) {
  const TensorView<const std::int64_t> ids(file.token_ids.data(),
                                           Shape{static_cast<std::int64_t>(file.token_ids.size())});
  io::write_npz_stream({{"weights", file.weights}, {"visible", file.visible}, {"token_ids", ids}},
                       NpzCompression::kStored, sink);
}

std::string note_of(const SentenceSettings& settings) {
  return fmt::format(
      "Row: the token that asks; column: the token that is listened to. Mask {}, temperature {}, "
      "random parameters (seed {}).",
      settings.mask.description(), settings.temperature, settings.seed);
}

std::string picture(const SentenceAttention& attention) {
  const TerminalStyle plain;
  return draw_tokens(attention, plain) + '\n' + draw_heads(attention, all_heads(attention), plain);
}

}  // namespace

std::string to_json(const SentenceAttention& attention) {
  const SentenceSettings& settings = attention.settings;
  const nlohmann::json json{{"sentence", attention.text},
                            {"tokens", attention.labels},
                            {"token_ids", attention.token_ids},
                            {"settings",
                             {{"num_heads", settings.num_heads},
                              {"d_model", settings.d_model},
                              {"seed", settings.seed},
                              {"mask", settings.mask.description()},
                              {"temperature", settings.temperature},
                              {"has_positions", settings.has_positions}}},
                            {"weights", number_lists(attention.weights.view())}};
  constexpr int kOneLine = -1;
  constexpr bool kAsciiOnly = true;
  return json.dump(kOneLine, ' ', kAsciiOnly) + '\n';
}

std::string wrote(const fs::path& path) {
  return fmt::format("Written: '{}'\n", sanitize_for_terminal(path.string()));
}

void check_ending(const fs::path& path) {
  const std::string ending = path.extension().string();
  for (const char* known : {".npy", ".npz", ".txt"}) {
    if (ending == known) return;
  }
  const Picture known{.figure = [] { return Figure(); },
                      .json = [] { return std::string(); },
                      .page = [] { return std::string(); }};
  if (is_picture(path)) return check_picture(kOption, path, known);
  throw UsageError(fmt::format("{}: '{}' does not end in {}, which choose the format", kOption,
                               path.string(), kSentenceEndings));
}

void write_explanation(const fs::path& path, const ExplanationFile& file) {
  check_ending(path);
  const std::string ending = path.extension().string();
  OutputFiles files;
  files.reserve(kOption, path);
  if (is_picture(path)) {
    write_picture(files, kOption, path, file.picture);
  } else if (ending == ".txt") {
    files.write_text(kOption, file.text());
  } else {
    files.write(kOption, [&](const io::ByteSink& sink) {
      if (ending == ".npz") return write_arrays(file, sink);
      io::write_npy_stream(file.weights, sink);
    });
  }
  files.commit();
}

void write_sentence(const fs::path& path, const SentenceAttention& attention,
                    const std::vector<std::int64_t>& heads, const PictureArguments& arguments) {
  const auto figure = [&] {
    return draw_figure(attention, heads, note_of(attention.settings), arguments);
  };
  const auto page = [&] {
    return explorer_page({{inspect::to_explorer(attention), explorer_example()}});
  };
  write_explanation(
      path,
      {.picture = {.figure = figure, .json = [&] { return to_json(attention); }, .page = page},
       .text = [&] { return picture(attention); },
       .weights = attention.weights.view(),
       .visible = attention.visible.view(),
       .token_ids = attention.token_ids});
}

}  // namespace heed::cli
