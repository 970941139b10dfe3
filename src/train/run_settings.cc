// The settings of runs: their checks, and their JSON in files.
#include "train/run_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "heed/core/error.h"
#include "heed/train/training_settings.h"
#include "heed/train/translation_settings.h"
#include "models/settings.h"

namespace heed { inline namespace v0 { namespace train {

using models::check_setting;
using models::name_of_setting;

void check_settings(const TrainingSettings& settings, SettingNames names) {
  check_setting("steps", settings.steps, {1, 100'000'000}, names);
  check_setting("batch", settings.batch, {1, 4096}, names);
  check_setting("save_every", settings.save_every, {1, 100'000'000}, names);
  if (!(settings.learning_rate > 0 && std::isfinite(settings.learning_rate))) {
    throw InvalidArgument(fmt::format("{} is {}, expected a positive number",
                                      models::name_of_setting("learning_rate", names),
                                      settings.learning_rate));
  }
}

nn::WarmupCosine learning_schedule(const TrainingSettings& settings) {
  constexpr double kWarmupShare = 0.05;
  constexpr double kFloorShare = 0.05;
  return {
      .peak = settings.learning_rate,
      .warmup_steps = static_cast<std::int64_t>(kWarmupShare * static_cast<double>(settings.steps)),
      .total_steps = settings.steps,
      .floor = kFloorShare * settings.learning_rate};
}

namespace {

void check_corpus(const CorpusSettings& corpus, SettingNames names) {
  if (corpus.task != kParallelText) check_setting("task", corpus.task, kTaskNames, names);
  check_setting("from", corpus.from, kLanguageNames, names);
  check_setting("to", corpus.to, kLanguageNames, names);
  check_setting("units", corpus.units, std::vector<std::string>{"words", "characters"}, names);
  check_setting("max_length", corpus.max_length, {1, 1000}, names);
  check_setting("examples", corpus.examples, {1, 100'000'000}, names);
  check_setting("held_out", corpus.held_out, {1, 100'000'000}, names);
}

void check_model(const TranslatorSettings& model, SettingNames names) {
  check_setting("attention", model.attention, kAttentionNames, names);
  check_setting("layers", model.layers, {1, 8}, names);
  check_setting("d_model", model.d_model, {2, 1024}, names);
  check_setting("heads", model.heads, {1, 64}, names);
  check_setting("the longest target", model.max_len, {1, 1'000'000}, names);
  const std::string d_model = name_of_setting("d_model", names);
  if (model.d_model % 2 != 0) {
    throw InvalidArgument(
        fmt::format("{} is {}, expected an even number: the encoder reads in two directions",
                    d_model, model.d_model));
  }
  if (model.attention == "multihead" && model.d_model % model.heads != 0) {
    throw InvalidArgument(fmt::format("{} is {}, expected a multiple of {}, {}", d_model,
                                      model.d_model, name_of_setting("heads", names), model.heads));
  }
  if (!(model.dropout >= 0 && model.dropout < 1)) {
    throw InvalidArgument(fmt::format("{} is {}, expected 0 to less than 1",
                                      name_of_setting("dropout", names), model.dropout));
  }
}

const char* name_of_language(const std::string& code) {
  if (code == "en") return "English";
  return code == "fr" ? "French" : "German";
}

}  // namespace

void check_settings(const TranslationSettings& settings, SettingNames names) {
  TrainingSettings training = settings.training;
  training.steps = std::max<std::int64_t>(training.steps, 1);
  check_settings(training, names);
  check_setting("epochs", settings.epochs.epochs, {1, 1'000'000}, names);
  check_setting("patience", settings.epochs.patience, {0, 1'000'000}, names);
  check_corpus(settings.corpus, names);
  check_model(settings.model, names);
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

namespace {

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

nlohmann::json to_json(const TrainingSettings& settings) {
  return {{"steps", settings.steps},
          {"batch", settings.batch},
          {"learning_rate", settings.learning_rate},
          {"seed", settings.seed},
          {"save_every", settings.save_every}};
}

nlohmann::json to_json(const TranslationSettings& settings) {
  return {{"task", kTranslateTask},
          {"training", to_json(settings.training)},
          {"epochs", settings.epochs.epochs},
          {"patience", settings.epochs.patience},
          {"corpus", corpus_json(settings.corpus)},
          {"model", model_json(settings.model)}};
}

nlohmann::json to_json(const EpochResult& result) {
  return {{"epoch", result.epoch},
          {"loss", result.loss},
          {"bleu", result.bleu},
          {"exact_match", result.exact}};
}

TrainingSettings training_settings(const nlohmann::json& json, const std::filesystem::path& file,
                                   SettingNames names) {
  return models::settings_of(file, [&] {
    const nlohmann::json& from = json.at("training");
    TrainingSettings settings{from.at("steps"), from.at("batch"), from.at("learning_rate"),
                              from.at("seed"), from.at("save_every")};
    check_settings(settings, names);
    return settings;
  });
}

TranslationSettings translation_settings(const nlohmann::json& json,
                                         const std::filesystem::path& file, SettingNames names) {
  return models::settings_of(file, [&] {
    TranslationSettings settings{training_settings(json, file, names),
                                 {json.at("epochs"), json.at("patience")},
                                 corpus_settings(json.at("corpus")),
                                 translator_settings(json.at("model"))};
    check_settings(settings, names);
    return settings;
  });
}

}}}  // namespace heed::v0::train
