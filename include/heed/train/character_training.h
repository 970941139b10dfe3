/// Trains a model of characters on a text: what `heed train lm` does.
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

/// The model and how it is trained. model.vocab_size follows from the text.
struct CharacterTraining {
  TrainingSettings training{.steps = 500, .batch = 16};
  models::CausalConfig model = {};
  /// The ranks that train it together, each with its share of every batch; null: alone.
  Communicator* ranks = nullptr;
  /// Whether these share the tokens of each sequence instead, for long ones: nn::ContextParallel.
  /// No part of the settings that a folder keeps.
  bool is_context_parallel = false;
};

/// The loss over sequences of a length; nothing where positions end before, or the text.
struct LossAtLength {
  std::int64_t length;
  std::optional<TextLoss> loss;
};

/// What a training on a text gave.
struct CharacterRun {
  models::CharacterModel model;
  TrainingSettings training;  ///< as given, or those of the run that was resumed
  std::string settings;       ///< JSON, as it stands in the files of the run
  RunOutcome outcome;
};

/// What a model makes of a text.
struct CharacterLosses {
  LossAtLength learned;  ///< over what it learned from
  /// Over what it has not seen, also in sequences twice and four times as long as it was trained
  /// on.
  std::vector<LossAtLength> held_out;
};

/// Trains on text.learned(). A run that is resumed goes on with the settings in its folder, with
/// any number of ranks. With ranks, all call it, with the same settings and text; the losses are
/// those of one process to rounding, and the same bits for as many ranks. Only rank 0 looks at the
/// folder.
/// @param names what messages call settings
/// @throws InvalidArgument naming a setting that is out of range, or a rank with other settings or
/// another text.
/// @throws std::runtime_error when the text is too short for a sequence, or the run was of another
/// text; IoError, FormatError as run_training().
HEED_API CharacterRun train_characters(const CharacterTraining& settings, const HeldOutText& text,
                                       const RunFolder& folder, RunObserver& observer,
                                       SettingNames names = SettingNames::kMembers);

/// @param text that which the model was trained on
HEED_API CharacterLosses losses_on(const models::CharacterModel& model, const HeldOutText& text);
/// The same on all ranks, which share the tokens of each sequence.
HEED_API CharacterLosses losses_on(const models::CharacterModel& model, const HeldOutText& text,
                                   Communicator& ranks);

}}}  // namespace heed::v0::train
