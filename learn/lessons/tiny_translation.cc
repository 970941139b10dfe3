#include "lessons/tiny_translation.h"

#include <chrono>

#include "heed/core/random.h"
#include "heed/nn/optimizer.h"
#include "heed/nn/search.h"

namespace heed::learn {

namespace {

constexpr std::int64_t kBatch = 32;

std::vector<std::string> texts_of(const std::vector<tasks::Example>& examples,
                                  std::string tasks::Example::*side) {
  std::vector<std::string> texts;
  texts.reserve(examples.size());
  for (const tasks::Example& example : examples) texts.push_back(example.*side);
  return texts;
}

}  // namespace

TinyTask::TinyTask(const tasks::Corpus& from)
    : corpus(from),
      source(texts_of(from.train, &tasks::Example::source), from.source_units),
      target(texts_of(from.train, &tasks::Example::target), from.target_units) {}

std::vector<nn::SequencePair> TinyTask::pairs_of(
    const std::vector<tasks::Example>& examples) const {
  std::vector<nn::SequencePair> pairs;
  pairs.reserve(examples.size());
  for (const tasks::Example& example : examples) {
    pairs.push_back({source.ids(example.source), target.ids(example.target)});
  }
  return pairs;
}

TinyTask tiny_reversal(std::int64_t max_length, std::int64_t train) {
  return TinyTask(
      tasks::reverse_corpus({.num_symbols = 6, .min_length = 2, .max_length = max_length},
                            {.sizes = {.train = train, .validation = 0, .test = 200}}));
}

std::unique_ptr<nn::RecurrentSeq2Seq<>> tiny_model(const TinyTask& task,
                                                   nn::SourceAttention attention,
                                                   std::int64_t d_model) {
  set_seed(0);
  return std::make_unique<nn::RecurrentSeq2Seq<>>(
      nn::RecurrentSeq2SeqConfig{.src_vocab_size = task.source.size(),
                                 .tgt_vocab_size = task.target.size(),
                                 .d_model = d_model,
                                 .num_layers = 1,
                                 .attention = attention,
                                 .dropout = 0});
}

TinyTraining train_tiny(nn::Seq2Seq<>& model, const TinyTask& task, std::int64_t steps, double lr) {
  using Clock = std::chrono::steady_clock;
  const auto pairs = task.pairs_of(task.corpus.train);
  nn::Adam<> optimizer(model.parameters(), lr);
  TinyTraining result;
  std::int64_t tokens = 0;
  std::int64_t step = 0;
  const auto start = Clock::now();
  while (step < steps) {
    for (const auto& indices : nn::shuffled_batches(pairs, kBatch)) {
      if (step++ == steps) break;
      std::vector<nn::SequencePair> chosen;
      chosen.reserve(indices.size());
      for (const std::int64_t i : indices) chosen.push_back(pairs[static_cast<std::size_t>(i)]);
      const nn::SequenceBatch batch = nn::make_batch(chosen);
      result.loss = nn::train_step(model, optimizer, batch).loss;
      tokens += batch.num_targets;
    }
  }
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  result.seconds = elapsed.count();
  result.tokens_per_second = static_cast<double>(tokens) / result.seconds;
  return result;
}

tasks::TranslationScore score_tiny(nn::Seq2Seq<>& model, const TinyTask& task,
                                   const std::vector<tasks::Example>& examples,
                                   std::int64_t width) {
  const nn::SequenceBatch batch = nn::make_batch(task.pairs_of(examples));
  std::vector<tasks::Tokens> hypotheses;
  std::vector<tasks::Tokens> references;
  references.reserve(examples.size());
  for (const auto& hypothesis : nn::greedy_search(model, batch.src, batch.src_lengths,
                                                  {.max_len = batch.tgt_out.extent(1)})) {
    hypotheses.push_back(task.target.tokens(hypothesis.tokens));
  }
  for (const tasks::Example& example : examples) {
    references.push_back(tasks::split_units(example.target, task.target.units()));
  }
  return tasks::score_translations(batch.src_lengths, hypotheses, references, width);
}

}  // namespace heed::learn
