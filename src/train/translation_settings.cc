#include "heed/train/translation_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "heed/core/error.h"
#include "models/settings.h"

namespace heed { inline namespace v0 { namespace train {

using models::check_setting;
using models::name_of_setting;

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

}}}  // namespace heed::v0::train
