/// Trains a translator epoch by epoch and keeps the best model, as `heed train translate` does.
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

/// The scores of an epoch.
struct EpochResult {
  std::int64_t epoch = 0;  ///< 1 after the first
  double loss = 0;         ///< mean cross entropy of a target token in training, in nats
  double bleu = 0;         ///< of the validation set
  double exact = 0;        ///< of the validation set
};

/// The time of an epoch that this process computed.
struct EpochTime {
  double seconds = 0;            ///< training alone
  double tokens_per_second = 0;  ///< target tokens, including end tokens
};

/// The course of a training.
struct TranslationRun {
  std::vector<EpochResult> epochs;
  std::vector<EpochTime> times;  ///< of the last epochs, those that this process computed in full
  std::size_t best = 0;          ///< the index in epochs of the best one
  RunOutcome outcome = {};
};

/// The folder, log and name of a run.
struct RunPlace {
  RunFolder folder = {};
  /// A file with one line per epoch, a JSON object; empty: none. An existing file is replaced,
  /// except for the lines of epochs that a resumed run has already computed.
  std::filesystem::path log = {};
  std::string name = {};  ///< printed before each line about an epoch; empty: nothing
};

/// Trains until all epochs are done, patience is exhausted, or the observer ends the run. A
/// finished translator has its best model, which is also in the folder.
/// @throws InvalidArgument, IoError as run_training(); IoError when the log cannot be written.
HEED_API TranslationRun train_translator(Translator& translator, const tasks::Corpus& corpus,
                                         const RunPlace& place, RunObserver& observer);

}}}  // namespace heed::v0::train
