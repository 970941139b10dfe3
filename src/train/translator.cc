#include "heed/train/translator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "heed/core/random.h"
#include "heed/nn/special_tokens.h"
#include "heed/nn/state_file.h"
#include "io/atomic_file.h"
#include "io/folder.h"
#include "io/text_file.h"
#include "train/run_settings.h"

namespace heed { inline namespace v0 { namespace train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSettingsFile = "settings.json";
constexpr const char* kSourceFile = "source_vocabulary.json";
constexpr const char* kTargetFile = "target_vocabulary.json";

// Sinusoidal positions end at 5000.
constexpr std::size_t kMaxTokens = 4000;

tasks::Language language_named(const std::string& code) {
  if (code == "en") return tasks::Language::kEnglish;
  return code == "fr" ? tasks::Language::kFrench : tasks::Language::kGerman;
}

tasks::Corpus parallel_corpus(const CorpusSettings& settings, const ParallelFiles& files) {
  if (files.empty()) {
    throw std::runtime_error("the model was trained on files; give them with --parallel-text");
  }
  if (!settings.files.empty() && settings.files != checksum_of(files)) {
    throw std::runtime_error(fmt::format(
        "'{}' and '{}' are not the files that the model was trained on", files[0], files[1]));
  }
  const auto units = settings.units == "words" ? tasks::Units::kWords : tasks::Units::kCharacters;
  return tasks::read_parallel_text(files[0], files[1], settings.seed, units);
}

tasks::Vocabulary vocabulary_of(const std::vector<tasks::Example>& examples,
                                std::string tasks::Example::*side, tasks::Units units) {
  std::vector<std::string> texts;
  texts.reserve(examples.size());
  for (const tasks::Example& example : examples) texts.push_back(example.*side);
  return {texts, units};
}

nn::SourceAttention source_attention(const std::string& name) {
  if (name == "none") return nn::SourceAttention::kNone;
  if (name == "additive") return nn::SourceAttention::kAdditive;
  if (name == "dot") return nn::SourceAttention::kDot;
  return name == "general" ? nn::SourceAttention::kGeneral : nn::SourceAttention::kConcat;
}

// Loads a vocabulary of a folder, which must be the one that the model was trained with.
tasks::Vocabulary load_vocabulary(const fs::path& path, const std::string& expected) {
  tasks::Vocabulary vocabulary = tasks::Vocabulary::load(path);
  if (io::checksum(vocabulary.to_json()) != expected) {
    throw std::runtime_error(fmt::format(
        "'{}' is not the vocabulary that the model was trained with: it has {} tokens, but others",
        path.string(), vocabulary.size()));
  }
  return vocabulary;
}

void check_length(const std::vector<std::int64_t>& ids, const std::string& text) {
  if (ids.size() <= kMaxTokens) return;
  throw std::runtime_error(fmt::format("a text has {} tokens, expected at most {}: '{}…'",
                                       ids.size(), kMaxTokens, text.substr(0, 40)));
}

// The name and the text of a file that describes a translator.
struct DescribedFile {
  fs::path path;
  std::string text;
};

// True if the file exists with this text: a run that ended before its first checkpoint left it.
bool is_there(const DescribedFile& file) {
  std::error_code error;
  return fs::is_regular_file(file.path, error) && io::read_text_file(file.path) == file.text;
}

void write_text(io::AtomicFile& file, std::string_view text) {
  file.write(std::as_bytes(std::span(text)));
}

}  // namespace

std::string checksum_of(const ParallelFiles& files) {
  return io::checksum(io::checksum(io::read_text_file(files[0])) +
                      io::checksum(io::read_text_file(files[1])));
}

tasks::Corpus make_corpus(const CorpusSettings& settings, const ParallelFiles& files) {
  if (settings.task == kParallelText) return parallel_corpus(settings, files);
  const tasks::DrawOptions draw{{settings.examples, settings.held_out, settings.held_out},
                                settings.seed};
  if (settings.task == "number-words") {
    return tasks::number_words_corpus(language_named(settings.from), language_named(settings.to),
                                      draw);
  }
  if (settings.task == "dates") return tasks::dates_corpus(draw);
  const tasks::SequenceOptions sequences{.max_length = settings.max_length};
  return settings.task == "copy" ? tasks::copy_corpus(sequences, draw)
                                 : tasks::reverse_corpus(sequences, draw);
}

std::vector<nn::SequencePair> Translator::encode(
    const std::vector<tasks::Example>& examples) const {
  std::vector<nn::SequencePair> pairs;
  pairs.reserve(examples.size());
  for (const tasks::Example& example : examples) {
    pairs.push_back({source.ids(example.source), target.ids(example.target)});
    check_length(pairs.back().source, example.source);
    check_length(pairs.back().target, example.target);
  }
  return pairs;
}

std::unique_ptr<nn::Seq2Seq<>> make_model(const TranslatorSettings& model,
                                          const VocabularySizes& sizes) {
  if (model.attention == "multihead") {
    return std::make_unique<nn::AttentionSeq2Seq<>>(
        nn::AttentionSeq2SeqConfig{.src_vocab_size = sizes.source,
                                   .tgt_vocab_size = sizes.target,
                                   .d_model = model.d_model,
                                   .num_heads = model.heads,
                                   .num_layers = model.layers,
                                   .dropout = model.dropout});
  }
  return std::make_unique<nn::RecurrentSeq2Seq<>>(
      nn::RecurrentSeq2SeqConfig{.src_vocab_size = sizes.source,
                                 .tgt_vocab_size = sizes.target,
                                 .d_model = model.d_model,
                                 .num_layers = model.layers,
                                 .attention = source_attention(model.attention),
                                 .dropout = model.dropout});
}

Translator new_translator(const TranslationSettings& settings, const tasks::Corpus& corpus) {
  Translator result{
      settings, vocabulary_of(corpus.train, &tasks::Example::source, corpus.source_units),
      vocabulary_of(corpus.train, &tasks::Example::target, corpus.target_units), nullptr};
  std::size_t longest = 0;
  for (const auto& pair : result.encode(corpus.train)) {
    longest = std::max(longest, pair.target.size());
  }
  TrainingSettings& training = result.settings.training;
  const auto examples = static_cast<std::int64_t>(corpus.train.size());
  const std::int64_t batches = (examples + training.batch - 1) / training.batch;
  training.steps = settings.epochs.epochs * batches;
  TranslatorSettings& model = result.settings.model;
  // 1.5 times the longest sequence seen, plus 5: a translation that has not ended by then does not
  // end.
  model.max_len = static_cast<std::int64_t>(longest + longest / 2) + 5;
  model.source_vocabulary = io::checksum(result.source.to_json());
  model.target_vocabulary = io::checksum(result.target.to_json());
  set_seed(training.seed);
  result.model = make_model(model, result.sizes());
  return result;
}

void write_description(const fs::path& folder, const Translator& translator) {
  const std::array<DescribedFile, 3> description{
      {{folder / kSettingsFile, to_json(translator.settings).dump(2) + '\n'},
       {folder / kSourceFile, translator.source.to_json()},
       {folder / kTargetFile, translator.target.to_json()}}};
  if (std::ranges::all_of(description, is_there)) return;
  io::refuse_existing(folder, {kSettingsFile, kSourceFile, kTargetFile});
  std::vector<std::unique_ptr<io::AtomicFile>> owners;
  std::vector<io::AtomicFile*> files;
  for (const auto& [path, text] : description) {
    owners.push_back(std::make_unique<io::AtomicFile>(path));
    write_text(*owners.back(), text);
    files.push_back(owners.back().get());
  }
  io::AtomicFile::commit_all(files);
}

Translator read_description(const fs::path& folder, SettingNames names) {
  const fs::path path = folder / kSettingsFile;
  const nlohmann::json json =
      models::parse_settings(io::read_text_file(path), kTranslateTask, path);
  TranslationSettings settings = translation_settings(json, path, names);
  tasks::Vocabulary source =
      load_vocabulary(folder / kSourceFile, settings.model.source_vocabulary);
  tasks::Vocabulary target =
      load_vocabulary(folder / kTargetFile, settings.model.target_vocabulary);
  Translator result{std::move(settings), std::move(source), std::move(target), nullptr};
  set_seed(result.settings.training.seed);
  result.model = make_model(result.settings.model, result.sizes());
  return result;
}

Translator load_translator(const fs::path& folder, SettingNames names) {
  Translator result = read_description(folder, names);
  nn::load(folder / "model.safetensors", *result.model);
  return result;
}

Translation translate(Translator& translator, const std::string& sentence, std::int64_t beam) {
  Translation result;
  const text::Tokenizer& source = translator.source;
  const text::Tokenizer& target = translator.target;
  text::Encoding encoding = source.encode(sentence);
  if (encoding.ids.empty()) return result;
  for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
    const auto [begin, end] = encoding.ranges[i];
    result.source.push_back(
        sentence.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    if (encoding.ids[i] == kUnknownId) result.unknown.push_back(result.source.back());
  }
  const Tensor<std::int64_t> src({static_cast<std::int64_t>(encoding.ids.size())}, encoding.ids);
  result.hypothesis =
      std::move(nn::beam_search(*translator.model, src,
                                {.beam = beam, .max_len = translator.settings.model.max_len})
                    .front());
  result.target = target.tokens(result.hypothesis.tokens);
  result.text = target.decode(result.hypothesis.tokens);
  return result;
}

}}}  // namespace heed::v0::train
