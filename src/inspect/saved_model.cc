#include "heed/inspect/saved_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/io/safetensors.h"
#include "heed/models/character_model.h"
#include "heed/nn/search.h"
#include "heed/nn/state_file.h"
#include "heed/tasks/copy_task.h"
#include "heed/tasks/shipped_text.h"
#include "heed/train/text_loss.h"
#include "heed/train/translator.h"
#include "models/settings.h"

namespace heed { inline namespace v0 { namespace inspect {

namespace {

// The number of sequences that are measured; more would give the same result.
constexpr std::int64_t kSequences = 32;

// Sequences as one batch, padded with 0.
struct Padded {
  Tensor<std::int64_t> ids;
  std::vector<std::int64_t> lengths;
};

Padded side_by_side(const std::vector<std::vector<std::int64_t>>& sequences) {
  std::size_t longest = 0;
  for (const auto& sequence : sequences) longest = std::max(longest, sequence.size());
  Padded result{Tensor<std::int64_t>({static_cast<std::int64_t>(sequences.size()),
                                      static_cast<std::int64_t>(longest)}),
                {}};
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    std::copy(sequences[i].begin(), sequences[i].end(),
              result.ids.view().select(0, static_cast<std::int64_t>(i)).data());
    result.lengths.push_back(static_cast<std::int64_t>(sequences[i].size()));
  }
  return result;
}

// A model and its file.
struct SavedModel {
  std::filesystem::path path;
  nlohmann::json settings;
  models::SettingNames names;
};

SavedModel read_model(std::filesystem::path path, models::SettingNames names) {
  if (std::filesystem::is_directory(path)) path /= "model.safetensors";
  Safetensors file = read_safetensors(path);
  nlohmann::json settings = models::parse_settings(file.metadata["settings"], path);
  return {std::move(path), std::move(settings), names};
}

// Uses ids as names.
std::vector<std::string> names_of(TensorView<const std::int64_t> ids) {
  std::vector<std::string> names;
  names.reserve(ids.elements().size());
  for (const std::int64_t id : ids.elements()) names.push_back(fmt::format("{}", id));
  return names;
}

ModelMeasurement measure_copy(const SavedModel& saved, const ModelInput& input) {
  if (!input.sentences.empty() || input.text) {
    throw InvalidArgument(
        "a model of `heed train copy` reads symbols of its own, not text; expected neither "
        "sentences nor --text");
  }
  const models::CausalConfig config = causal_config(saved.settings, saved.path, saved.names);
  models::CausalTransformer model(config);
  nn::load(saved.path, model);
  const tasks::CopyTask task{config.context / 2, config.vocab_size - 1};
  TorchGenerator random(0);
  const tasks::TokenBatch batch = draw_batch(task, kSequences, random);
  return {"copy",
          fmt::format("{} sequences of {} symbols, a separator and {} of the same symbols again",
                      kSequences, task.length, task.length - 1),
          measure_layers(model, batch.inputs),
          names_of(batch.inputs.view().select(0, 0)),
          {}};
}

// The sentences, or adjacent parts of a text.
std::vector<std::vector<std::int64_t>> sequences_of(const ModelInput& input,
                                                    const text::Characters& characters,
                                                    std::int64_t context) {
  std::vector<std::vector<std::int64_t>> sequences;
  sequences.reserve(input.sentences.size());
  for (const std::string& sentence : input.sentences) {
    sequences.push_back(characters.ids(sentence));
  }
  if (!sequences.empty()) return sequences;
  const bool is_shipped = !input.text;
  const train::HeldOutText text(characters,
                                input.text.value_or(std::string(tasks::shipped_text())));
  // Of the text that models learn from, the part that they do not.
  const train::Ids ids = is_shipped ? text.held_out() : train::Ids(text.ids);
  const auto length = std::min(static_cast<std::size_t>(context), ids.size());
  std::size_t first = 0;
  while (length > 0 && first + length <= ids.size() &&
         static_cast<std::int64_t>(sequences.size()) < kSequences) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first);
    sequences.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(length));
    first += length;
  }
  return sequences;
}

ModelMeasurement measure_lm(const SavedModel& saved, const ModelInput& input) {
  const auto [config, characters, model] = models::load_character_model(saved.path, saved.names);
  const auto sequences = sequences_of(input, characters, config.context);
  const Padded padded = side_by_side(sequences);
  const std::int64_t longest = padded.ids.extent(1);
  if (longest < 2) throw InvalidArgument("the text has less than two characters: nothing to see");
  if (longest > model->max_length()) {
    throw InvalidArgument(
        fmt::format("a sentence has {} characters, and the model's positions end "
                    "at {}",
                    longest, model->max_length()));
  }
  return {"lm",
          fmt::format("{} sequence{} of {} characters{}", sequences.size(),
                      sequences.size() == 1 ? "" : "s", longest,
                      input.sentences.size() > 1 ? " at most" : ""),
          measure_layers(*model, padded.ids, padded.lengths),
          characters.tokens(sequences.front()),
          {}};
}

// The pairs for measuring a translator: the given sentences with its translations, or test examples
// of its task with theirs.
std::vector<nn::SequencePair> pairs_of(train::Translator& translator, const ModelInput& input) {
  std::vector<std::string> sentences = input.sentences;
  if (input.text) {
    std::istringstream lines(*input.text);
    for (std::string line; std::getline(lines, line);) sentences.push_back(line);
  }
  if (sentences.empty()) {
    auto examples = train::make_corpus(translator.settings.corpus).test;
    examples.resize(std::min(examples.size(), static_cast<std::size_t>(kSequences)));
    return translator.encode(examples);
  }
  std::vector<nn::SequencePair> pairs;
  pairs.reserve(sentences.size());
  for (const std::string& sentence : sentences)
    pairs.push_back({translator.source.ids(sentence), {}});
  const nn::SequenceBatch batch = nn::make_batch(pairs);
  const auto written = nn::greedy_search(*translator.model, batch.src, batch.src_lengths,
                                         {.max_len = translator.settings.model.max_len});
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i].target = written[i].tokens;
  return pairs;
}

ModelMeasurement measure_translator(const SavedModel& saved, const ModelInput& input) {
  train::Translator translator = train::load_translator(saved.path.parent_path(), saved.names);
  const auto pairs = pairs_of(translator, input);
  // The decoder's input: <bos>, then the target tokens.
  std::vector<std::string> target{"<bos>"};
  for (std::string& token : translator.target.tokens(pairs.front().target)) {
    target.push_back(std::move(token));
  }
  return {train::kTranslateTask,
          fmt::format("{} sentence{} and {}", pairs.size(), pairs.size() == 1 ? "" : "s",
                      input.sentences.empty() && !input.text
                          ? "their translations, not seen in training"
                          : "what the model makes of them"),
          measure_layers(*translator.model, nn::make_batch(pairs)),
          translator.source.tokens(pairs.front().source), std::move(target)};
}

}  // namespace

ModelMeasurement measure_model(const std::filesystem::path& model, const ModelInput& input,
                               models::SettingNames names) {
  const SavedModel saved = read_model(model, names);
  const auto task = models::text_setting(saved.settings, "task", saved.path);
  if (task == "copy") return measure_copy(saved, input);
  if (task == "lm") return measure_lm(saved, input);
  if (task == train::kTranslateTask) return measure_translator(saved, input);
  throw std::runtime_error(fmt::format("'{}' is of `heed train {}`, expected copy, lm or translate",
                                       saved.path.string(), task));
}

}}}  // namespace heed::v0::inspect
