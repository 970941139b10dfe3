// What describes a training run, from arbitrary bytes: refused with a message, or settings that are
// in range and come back unchanged from the JSON that they make.
#include "train/settings.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "translation/settings.h"

namespace {

namespace cli = heed::cli;

// The settings of a causal model and of how it is trained.
void read_causal(const nlohmann::json& json) {
  const auto training = cli::training_settings(json, "fuzz.json");
  const auto model = cli::model_settings(json, "fuzz.json");
  const nlohmann::json again{{"training", cli::to_json(training)}, {"model", cli::to_json(model)}};
  if (cli::to_json(cli::training_settings(again, "")) != again["training"] ||
      cli::to_json(cli::model_settings(again, "")) != again["model"]) {
    std::abort();
  }
}

void read_translation(const nlohmann::json& json) {
  const auto settings = cli::translation_settings(json, "fuzz.json");
  const nlohmann::json again = cli::to_json(settings);
  if (cli::to_json(cli::translation_settings(again, "")) != again) std::abort();
  cli::describe(settings.corpus);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* task : {"lm", "copy", "translate"}) {
    try {
      const nlohmann::json json = cli::parse_settings(text, task, "fuzz.json");
      cli::text_setting(json, "task", "fuzz.json");
      if (std::string(task) == "translate") {
        read_translation(json);
      } else {
        read_causal(json);
      }
    } catch (const std::runtime_error&) {  // the JSON library's exceptions are none
    }
  }
  return 0;
}
