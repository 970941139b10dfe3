// heed models: what a model file holds, and whether heed opens it.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "heed/models/describe.h"
#include "heed/viz/terminal.h"
#include "verbs.h"

namespace heed::cli {

namespace {

struct ModelsArguments {
  std::vector<std::string> paths;
  bool as_json = false;
};

void print_line(std::string_view name, const std::string& text) {
  std::cout << fmt::format("  {:<12}{}\n", name, sanitize_for_terminal(text));
}

std::string sizes_of(const models::ModelConfig& config) {
  const std::string keys = config.num_kv_heads == config.num_heads
                               ? ""
                               : fmt::format(" ({} of keys)", config.num_kv_heads);
  return fmt::format("{} layers of {} heads{} of {}, hidden size {}, feed-forward {}",
                     config.num_layers, config.num_heads, keys, config.head_dim, config.hidden_size,
                     config.intermediate_size);
}

// Returns e.g. "5 of 6 layers see 512 tokens, 1 of 6 without rotary positions"; empty if all layers
// see all tokens in the same way.
std::string peculiarities_of(const models::ModelConfig& config) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const auto count = [&](const auto& holds) {
    return std::count_if(config.layers.begin(), config.layers.end(), holds);
  };
  const auto windows = count([](const models::LayerConfig& l) { return l.window.has_value(); });
  if (windows > 0) {
    const auto found = std::find_if(config.layers.begin(), config.layers.end(),
                                    [](const auto& layer) { return layer.window.has_value(); });
    add(fmt::format("{} of {} layers see the last {} tokens only", windows, config.num_layers,
                    *found->window));
  }
  const auto unrotated = count([](const models::LayerConfig& l) { return !l.rotary; });
  if (!config.rotaries.empty() && unrotated > 0) {
    add(fmt::format("{} of {} layers without rotary positions", unrotated, config.num_layers));
  }
  if (config.score_softcap) add(fmt::format("scores capped at {}", *config.score_softcap));
  if (config.logit_softcap) add(fmt::format("logits capped at {}", *config.logit_softcap));
  return text;
}

// Returns e.g. "134.5 M", "2.1 k" or "40 ".
std::string with_prefix(std::int64_t number) {
  const auto value = static_cast<double>(number);
  if (number >= 1'000'000'000) return fmt::format("{:.2f} G", value / 1e9);
  if (number >= 1'000'000) return fmt::format("{:.1f} M", value / 1e6);
  if (number >= 1'000) return fmt::format("{:.1f} k", value / 1e3);
  return fmt::format("{} ", number);
}

std::string weights_of(const models::ModelDescription& model) {
  std::string types;
  for (const models::StoredTensors& type : model.tensors) {
    types += fmt::format("{}{} of {}{}", types.empty() ? "" : ", ", type.tensors, type.type,
                         type.is_read ? "" : " (not read)");
  }
  const std::string files = model.num_files > 1 ? fmt::format(" in {} files", model.num_files) : "";
  return fmt::format("{}, {}B{}; tensors: {}", with_prefix(model.num_elements()),
                     with_prefix(model.num_bytes()), files, types);
}

void print_config(const models::ModelConfig& config) {
  print_line("sizes", sizes_of(config));
  print_line("context", fmt::format("{} tokens", config.max_positions));
  const std::string others = peculiarities_of(config);
  if (!others.empty()) print_line("layers", others);
}

void print_model(const models::ModelDescription& model) {
  std::cout << sanitize_for_terminal(model.path.string()) << '\n';
  const std::string kind = model.is_gguf ? "a GGUF file" : "a folder";
  const std::string family =
      model.config ? std::string(to_string(model.config->family)) + ", " : std::string();
  print_line("model",
             fmt::format("{}{}, {}", family,
                         model.architecture.empty() ? "unknown" : model.architecture, kind));
  if (model.config) print_config(*model.config);
  print_line("weights", weights_of(model));
  print_line("tokenizer", model.num_tokens
                              ? fmt::format("{} tokens, {} chat template", *model.num_tokens,
                                            model.has_chat_template ? "a" : "no")
                              : std::string("none"));
  print_line("heed", model.opens() ? "opens it" : "refuses it:");
  for (const std::string& refusal : model.refusals) print_line("", refusal);
}

void run_models(const ModelsArguments& arguments) {
  std::vector<models::ModelDescription> models;
  for (const std::string& path : arguments.paths) {
    for (auto& model : models::describe_all(path)) models.push_back(std::move(model));
  }
  for (const models::ModelDescription& model : models) {
    if (arguments.as_json) {
      std::cout << models::to_json(model) << '\n';
    } else {
      if (&model != models.data()) std::cout << '\n';
      print_model(model);
    }
  }
}

}  // namespace

void add_models(CLI::App& command) {
  CLI::App* verb =
      command.add_subcommand("models", "Say what a model file holds, and whether heed opens it");
  const auto arguments = std::make_shared<ModelsArguments>();
  add_option(*verb, "PATH", arguments->paths,
             "Folders of transformers or sentence-transformers, GGUF files, or a folder with "
             "several of them")
      ->required();
  add_flag(*verb, "--json", arguments->as_json, "Print one JSON object in a line for each model");
  verb->footer(
      "Examples:\n"
      "  heed models build/models\n"
      "  heed models --json model.gguf\n"
      "\n"
      "Headers, the configuration and the tokenizer are read, and no weights. If heed would\n"
      "refuse a part of the model, its error is printed for each; the exit code is 0.");
  verb->callback([arguments] { run_models(*arguments); });
}

}  // namespace heed::cli
