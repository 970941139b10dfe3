#include "train/settings_json.h"

namespace heed { inline namespace v0 { namespace train {

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
