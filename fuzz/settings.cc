// Settings of a training run from arbitrary bytes: they are refused with a message, or are in range
// and do not change when written as JSON and read again.
#include "models/settings.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "heed/train/translation_settings.h"
#include "train/run_settings.h"

namespace {

namespace models = heed::models;
namespace train = heed::train;

using models::SettingNames;

// Reads the settings of a causal model and of its training.
void read_causal(const nlohmann::json& json) {
  const auto training = train::training_settings(json, "fuzz.json", SettingNames::kMembers);
  const auto model = models::causal_config(json, "fuzz.json", SettingNames::kMembers);
  const nlohmann::json again{{"training", to_json(training)}, {"model", to_json(model)}};
  if (to_json(train::training_settings(again, "", SettingNames::kMembers)) != again["training"] ||
      to_json(models::causal_config(again, "", SettingNames::kMembers)) != again["model"]) {
    std::abort();
  }
}

void read_translation(const nlohmann::json& json) {
  const auto settings = train::translation_settings(json, "fuzz.json", SettingNames::kOptions);
  const nlohmann::json again = to_json(settings);
  if (to_json(train::translation_settings(again, "", SettingNames::kOptions)) != again)
    std::abort();
  describe(settings.corpus);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* task : {"lm", "copy", "translate"}) {
    try {
      const nlohmann::json json = models::parse_settings(text, task, "fuzz.json");
      models::text_setting(json, "task", "fuzz.json");
      if (std::string(task) == "translate") {
        read_translation(json);
      } else {
        read_causal(json);
      }
    } catch (const std::runtime_error&) {  // exceptions of the JSON library are not of this type
    }
  }
  return 0;
}
