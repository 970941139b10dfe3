// heed diagnose: whether the heads of a model have learned anything.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "array_attention.h"
#include "heed/inspect/explorer.h"
#include "heed/inspect/layer_text.h"
#include "heed/inspect/saved_model.h"
#include "heed/viz/layout.h"
#include "heed/viz/terminal.h"
#include "input_text.h"
#include "mask_argument.h"
#include "models/trained_model.h"
#include "output_files.h"
#include "picture_file.h"
#include "train/settings.h"
#include "verbs.h"

namespace heed::cli {

namespace {

struct DiagnoseArguments {
  std::string model;
  std::vector<std::string> sentences;
  std::string text_file;
  std::string weights;
  bool has_layers = false;  // the arrays have a leading dimension of layers
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> query_lengths;
  std::string mask;
  bool as_json = false;
  std::string out;
  PictureArguments picture;
};

constexpr const char* kDiagnoseOut = "--out";
constexpr const char* kLooksCausal =
    "All weights on later keys are 0: if a causal mask made them so, say --mask causal, for "
    "entropies are relative to the number of keys that were visible.";

// The kinds of files that --out accepts.
Picture known_pictures() {
  return {.figure = [] { return Figure(); },
          .json = [] { return std::string(); },
          .page = [] { return std::string(); }};
}

void check_usage(const DiagnoseArguments& arguments) {
  if (!arguments.out.empty()) check_picture(kDiagnoseOut, arguments.out, known_pictures());
  if (arguments.model.empty() == arguments.weights.empty()) {
    throw UsageError("expected either --model or --weights");
  }
  if (!arguments.sentences.empty() && !arguments.text_file.empty()) {
    throw UsageError("expected sentences or --text, not both");
  }
}

// Returns a layer [batch, num_heads, q_len, kv_len] for each one in the file.
std::vector<DoubleView> layers_of(const DiagnoseArguments& arguments, DoubleView array) {
  constexpr int kLayerRank = 4;
  const bool has_layers = arguments.has_layers || array.rank() > kLayerRank;
  const int rank = array.rank() - (has_layers ? 1 : 0);
  if (rank < 2 || rank > kLayerRank) {
    throw InvalidArgument(fmt::format(
        "'{}' has shape {}, expected {}[batch, num_heads, q_len, kv_len], of which the first two "
        "may be missing",
        arguments.weights, to_string(array.shape()), has_layers ? "layers in front of " : ""));
  }
  if (!has_layers) return {array.to_rank(kLayerRank)};
  std::vector<DoubleView> layers;
  for (std::int64_t l = 0; l < array.extent(0); ++l) {
    layers.push_back(array.select(0, l).to_rank(kLayerRank));
  }
  return layers;
}

// Measures the weights of a file as one layer.
inspect::MeasuredLayer measure_weights(const DiagnoseArguments& arguments, const std::string& name,
                                       DoubleView weights) {
  const bool is_square = weights.extent(2) == weights.extent(3);
  DiagnosticsOptions options{arguments.query_lengths, arguments.lengths};
  // Self-attention: queries and keys are the same tokens.
  if (options.q_lengths.empty() && is_square) options.q_lengths = arguments.lengths;
  const Mask mask = arguments.mask.empty() ? Mask() : parse_mask("--mask", arguments.mask);
  Tensor<float> first;
  if (weights.extent(0) > 0) first = to_float(AnyTensor(to_tensor(weights.select(0, 0))));
  const Shape matrix{weights.extent(2), weights.extent(3)};
  Tensor<bool> visible = materialize_allow(mask, {.q_len = matrix[0], .kv_len = matrix[1]});
  return {name, weight_diagnostics(weights, mask, options), std::move(first),
          std::move(visible).reshaped(matrix), mask.description()};
}

// True if no mask was given and no query attends to a later key.
bool looks_causal(const DiagnoseArguments& arguments, DoubleView weights) {
  if (!arguments.mask.empty() || weights.extent(2) != weights.extent(3) || weights.extent(3) < 2) {
    return false;
  }
  for (std::int64_t b = 0; b < weights.extent(0); ++b) {
    for (std::int64_t h = 0; h < weights.extent(1); ++h) {
      for (std::int64_t q = 0; q < weights.extent(2); ++q) {
        for (std::int64_t k = q + 1; k < weights.extent(3); ++k) {
          if (weights(b, h, q, k) != 0) return false;
        }
      }
    }
  }
  return true;
}

std::string dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + '\n';
}

// Draws the similarity of the heads' patterns, one panel for each layer.
Figure similarity_figure(const std::vector<inspect::MeasuredLayer>& layers,
                         const PictureArguments& arguments) {
  const Shape heads = layers.front().diagnostics.similarity.shape();
  Tensor<float> similarity({static_cast<std::int64_t>(layers.size()), heads[0], heads[1]});
  std::vector<std::string> names;
  float* cell = similarity.data();
  for (const inspect::MeasuredLayer& layer : layers) {
    if (layer.diagnostics.similarity.shape() != heads) {
      throw std::runtime_error("the layers have different numbers of heads: there is no picture");
    }
    names.push_back(layer.name);
    for (const double element : layer.diagnostics.similarity.elements()) {
      *cell++ = static_cast<float>(element);
    }
  }
  AttentionFigureOptions options = figure_options(arguments);
  options.title = "How alike the heads are";
  options.note = "cosine similarity of their patterns";
  options.query_title = "head";
  options.key_title = "head";
  options.panels = names;
  options.scale_max = 1;
  Figure figure = attention_figure(similarity, options);
  for (Panel& panel : figure.panels) {
    if (panel.color_bar && options.scale != ColorScale::kPerRow) {
      panel.color_bar->axis.label = "cosine similarity";
    }
  }
  return figure;
}

// Returns the tabs of a page. `remark` is added to their notes.
std::vector<ExplorerSentence> sentences_of(const inspect::ModelMeasurement& measured,
                                           const std::string& remark) {
  std::vector<ExplorerSentence> sentences = inspect::to_explorer(measured);
  if (remark.empty()) return sentences;
  for (ExplorerSentence& sentence : sentences) sentence.note += ' ' + remark;
  return sentences;
}

void write_picture_of(const inspect::ModelMeasurement& measured, const nlohmann::json& json,
                      const DiagnoseArguments& arguments, const std::string& remark = "") {
  if (arguments.out.empty()) return;
  if (measured.layers.empty()) throw std::runtime_error("the model has no attention to draw");
  OutputFiles files;
  files.reserve(kDiagnoseOut, arguments.out);
  write_picture(files, kDiagnoseOut, arguments.out,
                {.figure = [&] { return similarity_figure(measured.layers, arguments.picture); },
                 .json = [&] { return dump(json); },
                 .page = [&] { return explorer_page({sentences_of(measured, remark)}); }});
  files.commit();
}

nlohmann::json json_of(const inspect::MeasuredLayer& layer) {
  nlohmann::json json = nlohmann::json::parse(inspect::json_of(layer.diagnostics));
  json["name"] = layer.name;
  return json;
}

inspect::ModelInput input_of(const DiagnoseArguments& arguments) {
  inspect::ModelInput input{arguments.sentences};
  if (!arguments.text_file.empty()) input.text = read_input(arguments.text_file);
  return input;
}

void diagnose_model(const DiagnoseArguments& arguments) {
  refuse_trained(arguments.model);
  const inspect::ModelMeasurement measured =
      inspect::measure_model(arguments.model, input_of(arguments), kOptionNames);
  nlohmann::json json{{"model", arguments.model},
                      {"task", measured.task},
                      {"sequences", measured.sequences},
                      {"layers", nlohmann::json::array()}};
  for (const inspect::MeasuredLayer& layer : measured.layers)
    json["layers"].push_back(json_of(layer));
  write_picture_of(measured, json, arguments);
  if (arguments.as_json) {
    std::cout << dump(json);
    return;
  }
  std::cout << fmt::format("model     {}, of `heed train {}`\nmeasured  {}\n",
                           sanitize_for_terminal(arguments.model), measured.task,
                           measured.sequences);
  for (const inspect::MeasuredLayer& layer : measured.layers)
    std::cout << '\n' << inspect::text_of(layer);
  if (measured.layers.empty()) std::cout << "\nThe model has no attention.\n";
}

// Returns one layer as an object, several as a list.
nlohmann::json json_of(const DiagnoseArguments& arguments,
                       const std::vector<inspect::MeasuredLayer>& layers, bool are_listed) {
  nlohmann::json json;
  if (!are_listed) {
    json = nlohmann::json::parse(inspect::json_of(layers.front().diagnostics));
  } else {
    json["layers"] = nlohmann::json::array();
    for (const inspect::MeasuredLayer& layer : layers) json["layers"].push_back(json_of(layer));
  }
  json["weights"] = arguments.weights;
  return json;
}

void diagnose_weights(const DiagnoseArguments& arguments) {
  const ArrayFile file = read_floats(arguments.weights);
  const Tensor<double> array = to_double(file.array);
  const std::vector<DoubleView> arrays = layers_of(arguments, array);
  const bool are_listed = arguments.has_layers || array.rank() > 4;
  std::vector<inspect::MeasuredLayer> layers;
  for (const DoubleView& weights : arrays) {
    const std::string name = are_listed ? fmt::format("layer {}", layers.size()) : describe(file);
    layers.push_back(measure_weights(arguments, name, weights));
  }
  const bool is_causal =
      !arrays.empty() && std::all_of(arrays.begin(), arrays.end(), [&](const DoubleView& weights) {
        return looks_causal(arguments, weights);
      });
  nlohmann::json json = json_of(arguments, layers, are_listed);
  json["looks_causal"] = is_causal;
  write_picture_of({.sequences = "the sequences in the file", .layers = layers}, json, arguments,
                   is_causal ? kLooksCausal : "");
  if (arguments.as_json) {
    std::cout << dump(json);
    return;
  }
  if (are_listed) {
    std::cout << fmt::format("weights   {}\n", sanitize_for_terminal(describe(file)));
    for (const inspect::MeasuredLayer& layer : layers) std::cout << '\n' << inspect::text_of(layer);
  } else {
    std::cout << inspect::text_of(
        {sanitize_for_terminal(layers.front().name), layers.front().diagnostics});
  }
  if (is_causal) {
    std::cout << '\n' << wrap_text(kLooksCausal, detect_terminal(STDOUT_FILENO).width);
  }
  if (!are_listed && arguments.lengths.empty() && arrays.front().extent(0) > 1) {
    std::cout
        << "\nThe first axis was taken for sequences that one layer read: say --layers where\n"
           "it counts layers.\n";
  }
}

void add_weight_options(CLI::App& verb, DiagnoseArguments& arguments) {
  constexpr const char* kWeights = "Weights";
  add_option(verb, "--weights", arguments.weights,
             "Instead of a model: weights that you have, [batch, num_heads, q_len, kv_len]; "
             "missing leading dimensions are 1, and one more in front counts layers")
      ->type_name("FILE")
      ->group(kWeights);
  add_flag(verb, "--layers", arguments.has_layers,
           "The first axis counts layers: [layers, num_heads, q_len, kv_len]")
      ->group(kWeights)
      ->needs("--weights");
  add_list(verb, "--lengths", arguments.lengths, {},
           "How many tokens of each sequence are real: of the keys, and of the queries where "
           "there are as many")
      ->type_name("N,...")
      ->group(kWeights)
      ->needs("--weights");
  add_list(verb, "--query-lengths", arguments.query_lengths, {},
           "The same of the queries, where they differ")
      ->type_name("N,...")
      ->group(kWeights)
      ->needs("--weights");
  add_option(verb, "--mask", arguments.mask, fmt::format("The mask that was used: {}", kMaskHelp))
      ->type_name("MASK")
      ->group(kWeights)
      ->needs("--weights");
}

}  // namespace

void add_diagnose(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "diagnose", "Tell what attention has learned: idle, alike and specialised heads");
  const auto arguments = std::make_shared<DiagnoseArguments>();
  add_option(*verb, "--model", arguments->model,
             "The folder that `heed train ... --save` named, or a file of it")
      ->type_name("DIR");
  add_option(*verb, "SENTENCE", arguments->sentences,
             "What the model reads; without it, what it was trained for")
      ->needs("--model");
  add_option(*verb, "--text", arguments->text_file,
             "Or a file, read in pieces; - is standard input")
      ->type_name("FILE")
      ->needs("--model");
  add_flag(*verb, "--json", arguments->as_json,
           "Print every measure and finding as one JSON object");
  add_option(*verb, kDiagnoseOut, arguments->out,
             "Also draw how alike the heads of each layer are into a file, or, as .html, "
             "where they looked in the first sequence; its ending chooses the format: " +
                 picture_endings(known_pictures()))
      ->type_name("FILE");
  add_picture_options(*verb, arguments->picture);
  add_weight_options(*verb, *arguments);
  verb->footer(
      "Measures are means over the rows that see two keys at least: entropy relative to\n"
      "that of equal weights, the weight on padding, on the first token, on the previous,\n"
      "the same and the next position, on the best constant offset, and on the one key\n"
      "that receives most. `!` marks a problem, `-` a pattern.");
  verb->callback([arguments] {
    check_usage(*arguments);
    if (arguments->model.empty()) {
      diagnose_weights(*arguments);
    } else {
      diagnose_model(*arguments);
    }
  });
}

}  // namespace heed::cli
