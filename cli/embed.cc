// heed embed: vectors of texts, and which texts are similar.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "arguments.h"
#include "heed/core/error.h"
#include "heed/viz/terminal.h"
#include "input_text.h"
#include "io/npy_stream.h"
#include "models/sealed_run.h"
#include "models/sealing.h"
#include "models/trained_model.h"
#include "output_files.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr const char* kEmbedOut = "--out";
constexpr std::size_t kMaxListedTexts = 1000;  // every pair of them is compared
constexpr std::size_t kNeighbours = 3;

struct EmbedArguments {
  std::string model;
  std::vector<std::string> texts;
  std::string file;
  std::string out;
  SealArguments seal;
  bool as_json = false;
};

// Returns the nonblank lines of a file or of standard input.
std::vector<std::string> lines_of(const std::string& path) {
  const std::string text = read_input(path);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) lines.push_back(std::move(line));
    begin = end + 1;
  }
  if (lines.empty()) throw InvalidArgument(fmt::format("'{}' holds no text", path));
  return lines;
}

double cosine(FloatView a, FloatView b) {
  double product = 0;
  double a_square = 0;
  double b_square = 0;
  for (std::int64_t i = 0; i < a.extent(0); ++i) {
    product += static_cast<double>(a(i)) * static_cast<double>(b(i));
    a_square += static_cast<double>(a(i)) * static_cast<double>(a(i));
    b_square += static_cast<double>(b(i)) * static_cast<double>(b(i));
  }
  return a_square > 0 && b_square > 0 ? product / std::sqrt(a_square * b_square) : 0;
}

struct Neighbour {
  std::size_t text;
  double cosine;
};

// Returns the texts most similar to one, the most similar first.
std::vector<Neighbour> neighbours_of(std::size_t text, FloatView vectors) {
  std::vector<Neighbour> all;
  for (std::size_t other = 0; other < static_cast<std::size_t>(vectors.extent(0)); ++other) {
    if (other == text) continue;
    all.push_back({other, cosine(vectors.select(0, static_cast<std::int64_t>(text)),
                                 vectors.select(0, static_cast<std::int64_t>(other)))});
  }
  const std::size_t shown = std::min(kNeighbours, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), all.end(),
                    [](const Neighbour& a, const Neighbour& b) { return a.cosine > b.cosine; });
  all.resize(shown);
  return all;
}

void print_neighbours(const std::vector<std::string>& texts, FloatView vectors) {
  std::cout << fmt::format("{} texts, vectors of {} numbers; cosines of the closest:\n",
                           texts.size(), vectors.extent(1));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::cout << '\n' << sanitize_for_terminal(texts[i]) << '\n';
    for (const auto& [text, cosine] : neighbours_of(i, vectors)) {
      std::cout << fmt::format("  {:6.3f}  {}\n", cosine, sanitize_for_terminal(texts[text]));
    }
  }
}

// Returns the vectors; throws std::runtime_error where --verify names a seal of another model or of
// other texts.
Tensor<float> vectors_of(const models::Model& model, const std::vector<std::string>& texts,
                         SealedRun& sealed) {
  if (sealed.seal() != nullptr) {
    sealed.hash(model);
    sealed.check_inputs(models::begun_seal(model, texts));
  }
  return model.embed(texts, {.seal = sealed.seal()});
}

void print_vectors(const std::vector<std::string>& texts, FloatView vectors) {
  if (texts.size() <= kMaxListedTexts) return print_neighbours(texts, vectors);
  std::cout << fmt::format("{} texts, vectors of {} numbers\n", texts.size(), vectors.extent(1));
}

void run_embed(const EmbedArguments& arguments) {
  if (arguments.texts.empty() == arguments.file.empty()) {
    throw UsageError("expected either texts or --file (--file - reads standard input)");
  }
  const std::filesystem::path out = arguments.out;
  if (!arguments.out.empty() && out.extension() != ".npy") {
    throw UsageError(fmt::format("{}: '{}' does not end in .npy", kEmbedOut, arguments.out));
  }
  const std::vector<std::string> texts =
      arguments.file.empty() ? arguments.texts : lines_of(arguments.file);
  SealedRun sealed(arguments.seal, models::SealKind::kEmbed);
  OutputFiles files;
  if (!arguments.seal.file.empty()) files.protect("--seal-file", arguments.seal.file);
  if (!arguments.out.empty()) files.reserve(kEmbedOut, out);
  const Tensor<float> vectors = vectors_of(load_trained(arguments.model), texts, sealed);
  if (!arguments.out.empty()) {
    files.write(kEmbedOut,
                [&](const io::ByteSink& sink) { io::write_npy_stream(vectors.view(), sink); });
    files.commit();
  }
  if (arguments.as_json) {
    nlohmann::json json{{"texts", texts}, {"vectors", number_lists(vectors)}};
    sealed.add_to(json);
    std::cout << json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << '\n';
  } else {
    print_vectors(texts, vectors);
  }
  sealed.finish(arguments.as_json);
}

}  // namespace

void add_embed(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "embed", "Make vectors of texts with a trained model, and say which are close");
  const auto arguments = std::make_shared<EmbedArguments>();
  add_option(*verb, "TEXT", arguments->texts, "Texts, each one argument");
  add_option(*verb, "--model", arguments->model,
             "A folder of transformers or sentence-transformers, or a GGUF file")
      ->required()
      ->type_name("PATH");
  add_option(*verb, "--file", arguments->file,
             "The texts are the lines of this file; -: of standard input")
      ->type_name("FILE");
  add_option(*verb, kEmbedOut, arguments->out, "Also write the vectors as a .npy file")
      ->type_name("FILE");
  add_seal_options(*verb, arguments->seal);
  add_flag(*verb, "--json", arguments->as_json, "Print one JSON object with the vectors instead");
  verb->footer(
      "Examples:\n"
      "  heed embed --model all-MiniLM-L6-v2 \"A cat sat.\" \"A dog lay.\" \"Shares fell.\"\n"
      "  heed embed --model all-MiniLM-L6-v2 --file texts.txt --seal-file texts.seal\n"
      "  heed embed --model all-MiniLM-L6-v2 --file texts.txt --verify @texts.seal\n"
      "\n"
      "A seal is heed1:embed:MODEL:INPUT:OPTIONS:OUTPUT:STEPS:ALL:CHECK. STEPS has two\n"
      "characters for each vector, so that --verify says which differ. docs/models.md\n"
      "defines each part.");
  verb->callback([arguments] { run_embed(*arguments); });
}

}  // namespace heed::cli
