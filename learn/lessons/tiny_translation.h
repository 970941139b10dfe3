// Sequence-to-sequence models small enough to train while a reader waits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/nn/seq2seq.h"
#include "heed/nn/seq2seq_training.h"
#include "heed/tasks/corpus.h"
#include "heed/tasks/score.h"
#include "heed/tasks/vocabulary.h"

namespace heed::learn {

// A corpus as token ids.
struct TinyTask {
  explicit TinyTask(const tasks::Corpus& corpus);

  // Returns the sources and targets of some of the corpus's examples as ids.
  std::vector<nn::SequencePair> pairs_of(const std::vector<tasks::Example>& examples) const;

  tasks::Corpus corpus;
  tasks::Vocabulary source;
  tasks::Vocabulary target;
};

// Makes the task of reversing up to `max_length` letters.
TinyTask tiny_reversal(std::int64_t max_length, std::int64_t train);

// Makes a recurrent model of width `d_model` with one layer and no dropout, drawn with seed 0.
std::unique_ptr<nn::RecurrentSeq2Seq<>> tiny_model(const TinyTask& task,
                                                   nn::SourceAttention attention,
                                                   std::int64_t d_model);

// The results of a training.
struct TinyTraining {
  double loss = 0;               // of the last step
  double seconds = 0;            // measured
  double tokens_per_second = 0;  // of target tokens
};

// Trains for `steps` steps of Adam, each on 32 training examples.
TinyTraining train_tiny(nn::Seq2Seq<>& model, const TinyTask& task, std::int64_t steps, double lr);

// Scores the greedy translations of a model, in total and by source length in groups of `width`.
tasks::TranslationScore score_tiny(nn::Seq2Seq<>& model, const TinyTask& task,
                                   const std::vector<tasks::Example>& examples, std::int64_t width);

}  // namespace heed::learn
