// Sequence-to-sequence models small enough to be trained while a reader waits.
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

  // Sources and targets of some of its examples.
  std::vector<nn::SequencePair> pairs_of(const std::vector<tasks::Example>& examples) const;

  tasks::Corpus corpus;
  tasks::Vocabulary source;
  tasks::Vocabulary target;
};

// Letters to be written backwards, up to `max_length` of them.
TinyTask tiny_reversal(std::int64_t max_length, std::int64_t train);

// A recurrent model of width `d_model` with one layer and no dropout, drawn from seed 0.
std::unique_ptr<nn::RecurrentSeq2Seq<>> tiny_model(const TinyTask& task,
                                                   nn::SourceAttention attention,
                                                   std::int64_t d_model);

// How a training went.
struct TinyTraining {
  double loss = 0;               // of the last step
  double seconds = 0;            // measured
  double tokens_per_second = 0;  // of targets
};

// So many steps of Adam, each on 32 examples of the training part.
TinyTraining train_tiny(nn::Seq2Seq<>& model, const TinyTask& task, std::int64_t steps, double lr);

// How good is what a model writes, likeliest token by likeliest token; also by length, in groups of
// `width`.
tasks::TranslationScore score_tiny(nn::Seq2Seq<>& model, const TinyTask& task,
                                   const std::vector<tasks::Example>& examples, std::int64_t width);

}  // namespace heed::learn
