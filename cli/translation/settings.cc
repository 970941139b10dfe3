#include "translation/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace heed::cli {

namespace {

void check_name(std::string_view option, const std::string& name,
                const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  throw UsageError(
      fmt::format("{} is '{}', expected one of {}", option, name, fmt::join(names, ", ")));
}

void check_corpus(const CorpusSettings& corpus) {
  if (corpus.task != kParallelText) check_name("--task", corpus.task, kTaskNames);
  check_name("--from", corpus.from, kLanguageNames);
  check_name("--to", corpus.to, kLanguageNames);
  check_name("--units", corpus.units, {"words", "characters"});
  check_range("--max-length", corpus.max_length, 1, 1000);
  check_range("--examples", corpus.examples, 1, 100'000'000);
  check_range("--held-out", corpus.held_out, 1, 100'000'000);
}

void check_model(const TranslatorSettings& model) {
  check_name("--attention", model.attention, kAttentionNames);
  check_range("--layers", model.layers, 1, 8);
  check_range("--d-model", model.d_model, 2, 1024);
  check_range("--heads", model.heads, 1, 64);
  check_range("the longest target", model.max_len, 1, 1'000'000);
  if (model.d_model % 2 != 0) {
    throw UsageError(
        fmt::format("--d-model is {}, expected an even number: the encoder reads in two directions",
                    model.d_model));
  }
  if (model.attention == "multihead" && model.d_model % model.heads != 0) {
    throw UsageError(fmt::format("--d-model is {}, expected a multiple of --heads, {}",
                                 model.d_model, model.heads));
  }
  if (!(model.dropout >= 0 && model.dropout < 1)) {
    throw UsageError(fmt::format("--dropout is {}, expected 0 to less than 1", model.dropout));
  }
}

const char* name_of_language(const std::string& code) {
  if (code == "en") return "English";
  return code == "fr" ? "French" : "German";
}

nlohmann::json corpus_json(const CorpusSettings& corpus) {
  return {{"task", corpus.task},
          {"from", corpus.from},
          {"to", corpus.to},
          {"max_length", corpus.max_length},
          {"examples", corpus.examples},
          {"held_out", corpus.held_out},
          {"seed", corpus.seed},
          {"units", corpus.units},
          {"files", corpus.files}};
}

CorpusSettings corpus_settings(const nlohmann::json& from) {
  return {from.at("task"),       from.at("from"),     from.at("to"),
          from.at("max_length"), from.at("examples"), from.at("held_out"),
          from.at("seed"),       from.at("units"),    from.at("files")};
}

nlohmann::json model_json(const TranslatorSettings& model) {
  return {{"attention", model.attention},
          {"layers", model.layers},
          {"d_model", model.d_model},
          {"heads", model.heads},
          {"dropout", model.dropout},
          {"max_len", model.max_len},
          {"source_vocabulary", model.source_vocabulary},
          {"target_vocabulary", model.target_vocabulary}};
}

TranslatorSettings translator_settings(const nlohmann::json& from) {
  return {from.at("attention"),         from.at("layers"),
          from.at("d_model"),           from.at("heads"),
          from.at("dropout"),           from.at("max_len"),
          from.at("source_vocabulary"), from.at("target_vocabulary")};
}

}  // namespace

void check(const TranslationSettings& settings) {
  TrainingSettings training = settings.training;
  training.steps = std::max<std::int64_t>(training.steps, 1);
  check(training);
  check_range("--epochs", settings.epochs.epochs, 1, 1'000'000);
  check_range("--patience", settings.epochs.patience, 0, 1'000'000);
  check_corpus(settings.corpus);
  check_model(settings.model);
}

nlohmann::json to_json(const TranslationSettings& settings) {
  return {{"task", kTranslateTask},
          {"training", to_json(settings.training)},
          {"epochs", settings.epochs.epochs},
          {"patience", settings.epochs.patience},
          {"corpus", corpus_json(settings.corpus)},
          {"model", model_json(settings.model)}};
}

TranslationSettings translation_settings(const nlohmann::json& json,
                                         const std::filesystem::path& file) {
  return settings_of(file, [&] {
    return TranslationSettings{training_settings(json, file),
                               {json.at("epochs"), json.at("patience")},
                               corpus_settings(json.at("corpus")),
                               translator_settings(json.at("model"))};
  });
}

std::string describe(const CorpusSettings& corpus) {
  if (corpus.task == "number-words") {
    return fmt::format("number-words, {} to {}", name_of_language(corpus.from),
                       name_of_language(corpus.to));
  }
  if (corpus.task == kParallelText) return "parallel text";
  if (corpus.task == "dates") return "dates, English to ISO";
  return fmt::format("{} up to {} symbols", corpus.task, corpus.max_length);
}

}  // namespace heed::cli
