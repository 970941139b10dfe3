#include "models/explain_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/inspect/model_reading.h"
#include "heed/models/model.h"
#include "heed/viz/attention_figure.h"
#include "heed/viz/explorer.h"
#include "heed/viz/layout.h"
#include "heed/viz/terminal.h"
#include "models/trained_model.h"
#include "output_files.h"
#include "picture_file.h"
#include "sentence_files.h"
#include "verbs.h"

namespace heed::cli {

namespace {

// Returns "all-MiniLM-L6-v2" for "models/all-MiniLM-L6-v2/", also where the path is "." or ends in
// "..".
std::string name_of(const std::filesystem::path& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

// `path` is the folder or file of the model; its name becomes the page's title.
std::string model_page(const std::filesystem::path& path, const models::Model& model,
                       const inspect::ModelReading& reading) {
  ModelAttention page;
  page.title = name_of(path);
  page.note = fmt::format("“{}”, read by {}.", headline(reading.text), describe_model(model));
  page.tokens = reading.input.labels;
  page.words = reading.input.tokens.words;
  for (const inspect::ReadLayer& layer : reading.layers) {
    if (layer.has_other_terms) {
      page.layers.push_back({.value = layer.value, .weights = layer.weights, .mask = layer.mask});
      continue;
    }
    page.layers.push_back({.query = layer.query,
                           .key = layer.key,
                           .value = layer.value,
                           .mask = layer.mask,
                           .scale = layer.scale,
                           .softcap = layer.softcap});
  }
  return explorer_model_page(page);
}

void check_index(const char* option, std::optional<std::int64_t> index, std::int64_t count) {
  if (!index || (*index >= 0 && *index < count)) return;
  throw UsageError(fmt::format("{} is {}, the model has 0 to {}", option, *index, count - 1));
}

// Returns the layer to draw: the requested one, by default the last.
std::int64_t shown_layer(const ModelExplanation& request, const inspect::ModelReading& reading) {
  return request.layer.value_or(static_cast<std::int64_t>(reading.layers.size()) - 1);
}

std::vector<std::int64_t> shown_heads(const ModelExplanation& request,
                                      const inspect::AttendedTokens& tokens) {
  return request.head ? std::vector<std::int64_t>{*request.head} : all_heads(tokens);
}

// Returns the weights [num_layers, num_heads, num_tokens, num_tokens], or those of the chosen layer
// and head.
Tensor<float> all_weights(const ModelExplanation& request, const inspect::ModelReading& reading) {
  std::vector<float> numbers;
  std::int64_t num_layers = 0;
  for (std::size_t i = 0; i < reading.layers.size(); ++i) {
    if (request.layer && *request.layer != static_cast<std::int64_t>(i)) continue;
    FloatView weights = reading.layers[i].weights;
    if (request.head) weights = weights.slice(0, *request.head, *request.head + 1);
    numbers.insert(numbers.end(), weights.elements().begin(), weights.elements().end());
    ++num_layers;
  }
  const std::int64_t size = reading.visible.extent(0);
  const std::int64_t num_heads =
      static_cast<std::int64_t>(numbers.size()) / (num_layers * size * size);
  return {{num_layers, num_heads, size, size}, numbers};
}

std::string weights_json(const ModelExplanation& request, const models::Model& model,
                         const inspect::ModelReading& reading) {
  const Tensor<float> weights = all_weights(request, reading);
  nlohmann::json json{{"model", model.config().architecture},
                      {"text", reading.text},
                      {"tokens", reading.input.labels},
                      {"token_ids", reading.input.tokens.ids}};
  json["first_layer"] = request.layer.value_or(0);
  json["first_head"] = request.head.value_or(0);
  json["weights"] = number_lists(weights.view());
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + '\n';
}

std::string note_of(std::int64_t layer) {
  return fmt::format("Layer {}. Row: the token that asks; column: the token that is listened to.",
                     layer);
}

// Draws all layers and heads as small pictures, or the heads of the chosen layer.
Figure figure_of(const ModelExplanation& request, const models::Model& model,
                 const inspect::ModelReading& reading) {
  if (!request.layer && !request.head) {
    AttentionFigureOptions options = figure_options(request.picture);
    options.title = headline(reading.text);
    options.note =
        fmt::format("{}: a row is a layer, a column a head.", model.config().architecture);
    options.visible = reading.visible;
    return overview_figure(all_weights(request, reading), options);
  }
  const std::int64_t layer = shown_layer(request, reading);
  const inspect::AttendedTokens tokens = reading.tokens_of(layer);
  return draw_figure(tokens, shown_heads(request, tokens), note_of(layer), request.picture);
}

// Draws the chosen layer and heads in plain characters.
std::string text_of_layer(const ModelExplanation& request, const inspect::ModelReading& reading) {
  const TerminalStyle plain;
  const inspect::AttendedTokens tokens = reading.tokens_of(shown_layer(request, reading));
  return draw_tokens(tokens, plain) + '\n' +
         draw_heads(tokens, shown_heads(request, tokens), plain);
}

void write_file(const ModelExplanation& request, const models::Model& model,
                const inspect::ModelReading& reading) {
  const Tensor<float> weights = all_weights(request, reading);
  write_explanation(request.out,
                    {.picture = {.figure = [&] { return figure_of(request, model, reading); },
                                 .json = [&] { return weights_json(request, model, reading); },
                                 .page = [&] { return model_page(request.model, model, reading); }},
                     .text = [&] { return text_of_layer(request, reading); },
                     .weights = weights.view(),
                     .visible = reading.visible.view(),
                     .token_ids = reading.input.tokens.ids});
}

void print_layer(const ModelExplanation& request, const models::Model& model,
                 const inspect::ModelReading& reading) {
  const TerminalStyle style = detect_terminal(STDOUT_FILENO);
  const std::int64_t layer = shown_layer(request, reading);
  const inspect::AttendedTokens tokens = reading.tokens_of(layer);
  const std::string more =
      request.layer ? "" : "; --layer chooses another, --out page.html has all of them";
  std::cout << wrap_text(
                   fmt::format("{}. {} tokens; layer {} of 0 to {}{}.", describe_model(model),
                               tokens.num_tokens(), layer, model.config().num_layers - 1, more),
                   style.width)
            << '\n';
  if (!request.out.empty()) {
    std::cout << wrote(request.out);
    return;
  }
  std::cout << (tokens.num_tokens() > kMaxDrawnTokens ? "" : draw_tokens(tokens, style) + '\n')
            << draw_heads(tokens, shown_heads(request, tokens), style) << '\n'
            << wrap_text(
                   "A row is the token that asks, a column a token that is listened to, and each "
                   "row adds up to 1.",
                   style.width);
}

}  // namespace

void explain_model(const ModelExplanation& request) {
  if (!request.out.empty()) check_ending(request.out);
  const models::Model model = load_reader(request.model);
  check_index("--layer", request.layer, model.config().num_layers);
  check_index("--head", request.head, model.config().num_heads);
  const inspect::ModelReading reading = inspect::read_layers(model, request.text, request.pair);
  if (!request.out.empty()) write_file(request, model, reading);
  if (request.as_json) {
    std::cout << weights_json(request, model, reading);
  } else {
    print_layer(request, model, reading);
  }
}

}  // namespace heed::cli
