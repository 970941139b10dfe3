#include "translation/training.h"

#include "train/interrupt.h"
#include "train/session.h"

namespace heed::cli {

train::TranslationRun train_translator_shown(train::Translator& translator,
                                             const tasks::Corpus& corpus,
                                             const train::RunPlace& place) {
  const InterruptGuard guard;
  train::TranslationRun run;
  {
    TrainingProgress progress;
    run = train::train_translator(translator, corpus, place, progress);
  }
  finish_run(train::kTranslateTask, translator.settings.training, place.folder, run.outcome);
  return run;
}

}  // namespace heed::cli
