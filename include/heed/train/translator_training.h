/// Trains a translator epoch by epoch, and keeps the best: what `heed train translate` does.
///
///     const auto corpus = heed::train::make_corpus(settings.corpus);
///     auto translator = heed::train::new_translator(settings, corpus);
///     heed::train::RunObserver silent;
///     const auto run = heed::train::train_translator(translator, corpus, {}, silent);
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/train/training_run.h"
#include "heed/train/translator.h"

namespace heed { inline namespace v0 { namespace train {

/// What an epoch was worth.
struct EpochResult {
  std::int64_t epoch = 0;  ///< 1 after the first
  double loss = 0;         ///< mean cross entropy of a target token in training, in nats
  double bleu = 0;         ///< of the validation set
  double exact = 0;        ///< of the validation set
};

/// How long it took in this process: nothing of an epoch that another one computed.
struct EpochTime {
  double seconds = 0;            ///< training alone
  double tokens_per_second = 0;  ///< of targets, their ends included
};

/// How a training went.
struct TranslationRun {
  std::vector<EpochResult> epochs;
  std::vector<EpochTime> times;  ///< of the last epochs, those that this process has seen whole
  std::size_t best = 0;          ///< an index into epochs
  RunOutcome outcome = {};
};

/// Where a run is kept, and what it is called where it is told of.
struct RunPlace {
  RunFolder folder = {};
  /// A file that gets one JSON object a line for each epoch; empty: none. A file that is there is
  /// replaced, but for the lines of the epochs that a resumed run has done.
  std::filesystem::path log = {};
  std::string name = {};  ///< before each line about an epoch; empty: nothing
};

/// Trains until the epochs are done, patience is, or the observer ends the run. A finished
/// translator has its best model, which the folder has too.
/// @throws InvalidArgument, IoError as run_training(); IoError when the log cannot be written.
HEED_API TranslationRun train_translator(Translator& translator, const tasks::Corpus& corpus,
                                         const RunPlace& place, RunObserver& observer);

}}}  // namespace heed::v0::train
