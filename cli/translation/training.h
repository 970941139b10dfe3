// Trains a translator with progress.
#pragma once

#include "heed/train/translator_training.h"

namespace heed::cli {

// Calls train::train_translator() with progress on stderr. Throws Interrupted when Ctrl-C ended it.
train::TranslationRun train_translator_shown(train::Translator& translator,
                                             const tasks::Corpus& corpus,
                                             const train::RunPlace& place);

}  // namespace heed::cli
