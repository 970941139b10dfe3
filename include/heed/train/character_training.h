/// Trains a model of characters on a text, as `heed train lm` does.
///
///     const heed::train::HeldOutText text(heed::tasks::shipped_text());
///     heed::train::RunObserver silent;
///     auto run = heed::train::train_characters({}, text, heed::train::new_run("story"), silent);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/models/character_model.h"
#include "heed/train/text_loss.h"
#include "heed/train/training_run.h"
#include "heed/train/training_settings.h"

namespace heed { inline namespace v0 { namespace train {

/// The settings of the model and its training. model.vocab_size follows from the text.
struct CharacterTraining {
  TrainingSettings training{.steps = 500, .batch = 16};
  models::CausalConfig model = {};
  /// The ranks that train the model together, each with its share of every batch; null: one
  /// process.
  Communicator* ranks = nullptr;
  /// True if ranks share the tokens of each sequence instead, for long ones: nn::ContextParallel.
  /// It is not part of the settings in a folder.
  bool is_context_parallel = false;
};

/// The loss over sequences of a length; empty where positions or the text are shorter.
struct LossAtLength {
  std::int64_t length;
  std::optional<TextLoss> loss;
};

/// The result of a training.
struct CharacterRun {
  models::CharacterModel model;
  TrainingSettings training;  ///< as given, or those of the run that was resumed
  std::string settings;       ///< the settings as JSON, as in the files of the run
  RunOutcome outcome;
};

/// The losses of a model on a text.
struct CharacterLosses {
  LossAtLength learned;  ///< over the part that it was trained on
  /// Over the held-out part, also in sequences twice and four times as long as those of the
  /// training.
  std::vector<LossAtLength> held_out;
};

/// Trains on text.learned(). A resumed run continues with the settings in its folder, with any
/// number of ranks. With ranks, all call it with the same settings and text; the losses are those
/// of one process within rounding, and have the same bits for the same number of ranks. Only rank 0
/// accesses the folder.
/// @param names how messages name settings
/// @throws InvalidArgument naming a setting that is out of range, or a rank with other settings or
/// another text.
/// @throws std::runtime_error when the text is too short for a sequence, or the run was of another
/// text; IoError, FormatError as run_training().
HEED_API CharacterRun train_characters(const CharacterTraining& settings, const HeldOutText& text,
                                       const RunFolder& folder, RunObserver& observer,
                                       SettingNames names = SettingNames::kMembers);

/// The losses of a model. @param text the one that the model was trained on
HEED_API CharacterLosses losses_on(const models::CharacterModel& model, const HeldOutText& text);
/// losses_on() on all ranks, which share the tokens of each sequence.
HEED_API CharacterLosses losses_on(const models::CharacterModel& model, const HeldOutText& text,
                                   Communicator& ranks);

}}}  // namespace heed::v0::train
