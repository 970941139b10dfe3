// Texts and answers of trained models, as `heed generate` prints them.
#pragma once

#include <cstdint>
#include <string>

#include "heed/models/generate.h"
#include "models/sealed_run.h"

namespace heed::cli {

struct TextRequest {
  std::string model;
  std::string prompt;
  bool is_chat = false;    // the prompt is a message, to which the model's chat template is applied
  bool has_turns = false;  // each line of standard input is a message
  std::string system;      // a text for a model that answers, or empty
  std::int64_t count = 1;  // of texts
  models::GenerateOptions options;
  SealArguments seal;
  bool as_json = false;
};

// Prints the texts that are asked for as they are generated and, on stderr, the speed. Throws
// Interrupted after Ctrl-C.
void write_text(const TextRequest& request);

}  // namespace heed::cli
