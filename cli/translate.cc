// heed translate: translates with a trained model.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "arguments.h"
#include "heed/inspect/explorer.h"
#include "heed/nn/search.h"
#include "heed/train/translator.h"
#include "heed/viz/terminal.h"
#include "models/trained_model.h"
#include "output_files.h"
#include "picture_file.h"
#include "train/settings.h"
#include "translation/published.h"
#include "translation/shared.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr std::size_t kMaxLine = 10'000;
constexpr const char* kTranslateOut = "--out";

std::string dump(const nlohmann::json& json) { return json.dump(-1, ' ', true) + '\n'; }

// The kinds of files that --out accepts.
Picture known_pictures() {
  return {.figure = [] { return Figure(); },
          .json = [] { return std::string(); },
          .page = [] { return std::string(); }};
}

struct TranslateArguments {
  std::string model;
  std::vector<std::string> words;
  std::int64_t beam = 1;
  bool shows_alignment = false;
  std::optional<std::int64_t> head;
  bool as_json = false;
  std::string out;
  PictureArguments picture;
};

// Warns of words that the model has not learned and therefore cannot translate.
void warn_of_unknown(const train::Translation& translation) {
  if (translation.unknown.empty()) return;
  std::vector<std::string> unknown;
  for (const std::string& token : translation.unknown) {
    unknown.push_back(sanitize_for_terminal(token));
  }
  std::cerr << fmt::format("heed translate: the model has never seen {}\n",
                           fmt::join(unknown, ", "));
}

// Returns the weights of one head, or the mean of all heads: [tokens, src_len].
Tensor<float> weights_of(const Tensor<float>& alignment, std::optional<std::int64_t> head) {
  return head ? to_tensor(alignment.view().select(0, *head)) : mean_of_heads(alignment);
}

// What translates: a model of `heed train`, or one that others trained.
struct AnyTranslator {
  std::function<train::Translation(const std::string& sentence)> translate;
  bool has_attention = true;
  std::int64_t num_heads = 1;
};

AnyTranslator own_translator(const TranslateArguments& arguments) {
  const auto translator =
      std::make_shared<train::Translator>(train::load_translator(arguments.model, kOptionNames));
  const train::TranslatorSettings& model = translator->settings.model;
  return {.translate =
              [translator, beam = arguments.beam](const std::string& sentence) {
                return train::translate(*translator, sentence, beam);
              },
          .has_attention = translator->has_attention(),
          .num_heads = model.attention == "multihead" ? model.heads : 1};
}

AnyTranslator published_translator(const TranslateArguments& arguments) {
  const models::Model model = load_trained(arguments.model);
  const models::ModelConfig& config = model.config();
  if (!config.encoder) {
    throw std::runtime_error(
        fmt::format("--model: '{}' is a model of architecture {}, which has no encoder, expected "
                    "T5, BART, Marian or a model of `heed train translate`",
                    arguments.model, config.architecture));
  }
  if (arguments.beam != 1) {
    throw UsageError(fmt::format("--beam is {}, expected 1 with a model of architecture {}",
                                 arguments.beam, config.architecture));
  }
  return {.translate = [model](const std::string& text) { return translate(model, text); },
          .num_heads = config.num_layers * config.num_heads};
}

void check_head(const AnyTranslator& translator, const TranslateArguments& arguments) {
  if (!arguments.shows_alignment && arguments.out.empty()) {
    if (arguments.head) throw UsageError("--head is only for --show-alignment and --out");
    return;
  }
  if (!translator.has_attention) {
    throw std::runtime_error("the model has no attention, so there is no alignment to show");
  }
  if (arguments.head && (*arguments.head < 0 || *arguments.head >= translator.num_heads)) {
    throw UsageError(
        fmt::format("--head is {}, expected 0 to {}", *arguments.head, translator.num_heads - 1));
  }
}

nlohmann::json translation_json(const train::Translation& translation, bool with_alignment) {
  nlohmann::json json{{"source", translation.source},
                      {"target", translation.target},
                      {"text", translation.text},
                      {"log_probability", translation.hypothesis.log_probability},
                      {"is_complete", translation.hypothesis.is_complete}};
  const Tensor<float>& alignment = translation.hypothesis.alignment;
  if (with_alignment) {
    json["alignment"] = nlohmann::json::array();
    for (std::int64_t head = 0; alignment.rank() == 3 && head < alignment.extent(0); ++head) {
      nlohmann::json rows = nlohmann::json::array();
      for (std::int64_t row = 0; row < alignment.extent(1); ++row) {
        rows.push_back(alignment.view().select(0, head).select(0, row).elements());
      }
      json["alignment"].push_back(std::move(rows));
    }
  }
  return json;
}

// Writes the picture of one sentence's alignment, completely or not at all.
void write_alignment(const train::Translation& translation, const TranslateArguments& arguments) {
  const Tensor<float>& alignment = translation.hypothesis.alignment;
  if (alignment.rank() != 3 || alignment.empty()) {
    throw std::runtime_error("nothing was written, so there is no alignment to draw");
  }
  const std::string title =
      fmt::format("{} → {}", fmt::join(translation.source, " "), translation.text);
  const auto figure = [&] {
    AttentionFigureOptions options = figure_options(arguments.picture);
    options.title = title;
    options.note = arguments.head ? fmt::format("Where head {} looked.", *arguments.head)
                   : alignment.extent(0) > 1
                       ? fmt::format("Where its {} heads looked, on average.", alignment.extent(0))
                       : "Where it looked.";
    return alignment_figure(weights_of(alignment, arguments.head), translation.source,
                            translation.target, options);
  };
  const auto page = [&] {
    ExplorerSentence sentence = inspect::to_explorer(
        title, alignment, {.queries = translation.target, .keys = translation.source});
    sentence.note = "What each token that was written attended to in the source.";
    return explorer_page({{std::move(sentence)}});
  };
  OutputFiles files;
  files.reserve(kTranslateOut, arguments.out);
  write_picture(files, kTranslateOut, arguments.out,
                {.figure = figure,
                 .json = [&] { return dump(translation_json(translation, true)); },
                 .page = page});
  files.commit();
}

void print(const train::Translation& translation, const TranslateArguments& arguments) {
  std::cout << sanitize_for_terminal(translation.text) << std::endl;
  const Tensor<float>& alignment = translation.hypothesis.alignment;
  if (!arguments.shows_alignment || alignment.rank() != 3) return;
  std::cout << '\n'
            << render_heatmap(weights_of(alignment, arguments.head),
                              {translation.target, translation.source},
                              detect_terminal(STDOUT_FILENO))
            << std::endl;
}

void translate_sentence(const AnyTranslator& translator, const TranslateArguments& arguments,
                        const std::string& sentence) {
  const train::Translation translation = translator.translate(sentence);
  warn_of_unknown(translation);
  if (arguments.as_json) {
    std::cout << dump(translation_json(translation, arguments.shows_alignment)) << std::flush;
  } else {
    print(translation, arguments);
  }
  if (!arguments.out.empty()) write_alignment(translation, arguments);
}

void translate_lines(const AnyTranslator& translator, const TranslateArguments& arguments) {
  std::int64_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.size() > kMaxLine) {
      throw std::runtime_error(
          fmt::format("line {} has {} bytes, expected at most {}", number, line.size(), kMaxLine));
    }
    try {
      translate_sentence(translator, arguments, line);
    } catch (const InvalidArgument& error) {
      throw std::runtime_error(fmt::format("line {}: {}", number, error.what()));
    }
  }
}

void run_translate(const TranslateArguments& arguments) {
  if (!arguments.out.empty()) {
    check_picture(kTranslateOut, arguments.out, known_pictures());
    if (arguments.words.empty()) throw UsageError("--out draws one SENTENCE, and none was given");
  }
  std::error_code error;
  const std::filesystem::path path = arguments.model;
  const bool is_published = std::filesystem::exists(path / "config.json", error) ||
                            std::filesystem::is_regular_file(path, error);
  const AnyTranslator translator =
      is_published ? published_translator(arguments) : own_translator(arguments);
  check_head(translator, arguments);
  if (arguments.words.empty()) {
    translate_lines(translator, arguments);
  } else {
    translate_sentence(translator, arguments, fmt::format("{}", fmt::join(arguments.words, " ")));
  }
}

}  // namespace

void add_translate(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "translate", "Translate with a model of `heed train translate`, or with T5, BART or Marian");
  const auto arguments = std::make_shared<TranslateArguments>();
  add_model_option(*verb, arguments->model);
  add_option(*verb, "SENTENCE", arguments->words,
             "What to translate; if not given, standard input, a sentence a line");
  add_beam_option(*verb, arguments->beam);
  add_flag(*verb, "--show-alignment", arguments->shows_alignment,
           "Also draw where each produced token looked: the source across, what was "
           "produced down, the mean of all heads");
  add_option(*verb, "--head", arguments->head,
             "Draw this head alone, counted from 0; of T5, BART and Marian those of all layers"
             " are counted")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{4095}).description(""))
      ->type_name("N");
  add_option(*verb, kTranslateOut, arguments->out,
             "Also draw the alignment of SENTENCE into a file; its ending chooses the "
             "format: " +
                 picture_endings(known_pictures()))
      ->type_name("FILE");
  add_picture_options(*verb, arguments->picture);
  add_flag(*verb, "--json", arguments->as_json, "Print one JSON object a sentence");
  verb->footer(
      "Example:\n"
      "  heed translate --model fr \"twenty-three thousand eighty\" --show-alignment\n"
      "  heed translate --model opus-mt-en-de \"The cat sleeps.\" --out alignment.png");
  verb->callback([arguments] { run_translate(*arguments); });
}

}  // namespace heed::cli
