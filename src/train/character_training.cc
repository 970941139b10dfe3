#include "heed/train/character_training.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/random.h"
#include "heed/io/safetensors.h"
#include "io/text_file.h"
#include "models/settings.h"
#include "train/run_settings.h"

namespace heed { inline namespace v0 { namespace train {

namespace {

constexpr const char* kCharacterTask = "lm";

// Identifies a run's text by its characters.
std::string checksum_of_text(const HeldOutText& text) {
  std::string all;
  for (const std::int32_t id : text.ids) all += text.characters[id];
  return io::checksum(all);
}

nlohmann::json new_settings(CharacterTraining settings, const HeldOutText& text,
                            SettingNames names) {
  settings.model.vocab_size = text.characters.size();
  check_settings(settings.training, names);
  check_config(settings.model, names);
  return {{"task", kCharacterTask},
          {"training", to_json(settings.training)},
          {"model", to_json(settings.model)},
          {"characters", text.characters.all()},
          {"text", checksum_of_text(text)}};
}

std::string settings_in(const RunFolder& folder) {
  return read_safetensors(folder.checkpoint()).metadata["settings"];
}

nlohmann::json resumed_settings(const std::string& json, const RunFolder& folder,
                                const HeldOutText& text, SettingNames names) {
  nlohmann::json settings = models::parse_settings(json, kCharacterTask, folder.checkpoint());
  if (models::text_setting(settings, "text", folder.checkpoint()) != checksum_of_text(text)) {
    throw std::runtime_error(
        fmt::format("'{}' was trained on another text{}", folder.path.string(),
                    names == SettingNames::kOptions ? "; give it with --text" : ""));
  }
  return settings;
}

// Returns the settings that rank 0 has read, on all ranks.
std::string shared_settings_in(const RunFolder& folder, Communicator& ranks) {
  std::string text;
  run_on_all(ranks, [&] {
    if (ranks.rank() == 0) text = settings_in(folder);
  });
  return gather_texts(ranks, text).front();
}

void check_same(const std::string& settings, Communicator& ranks) {
  const std::vector<std::string> all = gather_texts(ranks, settings);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw InvalidArgument(fmt::format(
        "train_characters: rank {} has other settings, or another text, than rank 0", rank));
  }
}

nlohmann::json settings_of_run(const CharacterTraining& settings, const HeldOutText& text,
                               const RunFolder& folder, SettingNames names) {
  Communicator* const ranks = settings.ranks;
  if (ranks == nullptr) {
    return folder.is_resumed ? resumed_settings(settings_in(folder), folder, text, names)
                             : new_settings(settings, text, names);
  }
  const std::string found = folder.is_resumed ? shared_settings_in(folder, *ranks) : "";
  nlohmann::json json;
  run_on_all(*ranks, [&] {
    json = folder.is_resumed ? resumed_settings(found, folder, text, names)
                             : new_settings(settings, text, names);
  });
  check_same(json.dump() + (settings.is_context_parallel ? " context-parallel" : ""), *ranks);
  return json;
}

template <class LossOver>
CharacterLosses losses_by(std::int64_t context, const HeldOutText& text,
                          const LossOver& loss_over_ids) {
  CharacterLosses losses{{context, loss_over_ids(text.learned(), context)}, {}};
  for (const std::int64_t factor : {1, 2, 4}) {
    const std::int64_t length = factor * context;
    losses.held_out.push_back({length, loss_over_ids(text.held_out(), length)});
  }
  return losses;
}

}  // namespace

CharacterRun train_characters(const CharacterTraining& settings, const HeldOutText& text,
                              const RunFolder& folder, RunObserver& observer, SettingNames names) {
  const nlohmann::json json = settings_of_run(settings, text, folder, names);
  const TrainingSettings training = training_settings(json, folder.checkpoint(), names);
  const models::CausalConfig config = models::causal_config(json, folder.checkpoint(), names);
  if (text.learned().size() <= static_cast<std::size_t>(config.context)) {
    throw std::runtime_error(
        fmt::format("the text has {} characters, expected more than {}, {}, without the last tenth",
                    text.ids.size(), models::name_of_setting("context", names), config.context));
  }
  set_seed(training.seed);
  CharacterRun run{{config, text.characters, std::make_unique<models::CausalTransformer>(config)},
                   training,
                   json.dump(),
                   {}};
  models::CausalTransformer& model = *run.model.model;
  const bool divides_tokens = settings.is_context_parallel && settings.ranks != nullptr;
  const BatchShare share = share_of_batch(training.batch, settings.ranks);
  const auto loss = [&](std::int64_t) -> StepLoss {
    if (divides_tokens) {
      return random_batch_loss(model, text.learned(), training.batch, config.context,
                               *settings.ranks);
    }
    return {random_batch_loss(model, text.learned(), training.batch, config.context, share),
            share.count * config.context};
  };
  run.outcome = run_training(
      {model, loss, training, "characters", run.settings, nullptr, settings.ranks, divides_tokens},
      folder, observer);
  return run;
}

CharacterLosses losses_on(const models::CharacterModel& model, const HeldOutText& text) {
  return losses_by(model.config.context, text, [&](Ids ids, std::int64_t length) {
    return loss_over(*model.model, ids, length);
  });
}

CharacterLosses losses_on(const models::CharacterModel& model, const HeldOutText& text,
                          Communicator& ranks) {
  return losses_by(model.config.context, text, [&](Ids ids, std::int64_t length) {
    return loss_over(*model.model, ids, length, ranks);
  });
}

}}}  // namespace heed::v0::train
