// heed generate with a model that somebody else trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/models/generate.h"

namespace heed::cli {

struct TextRequest {
  std::string model;
  std::string prompt;
  bool is_chat = false;  // the prompt is a message, in the words of the model's template
  models::GenerateOptions options;
  bool as_json = false;
};

// Prints the text as it comes and, on stderr, how fast. Throws Interrupted after Ctrl-C.
void write_text(TextRequest request);

}  // namespace heed::cli
