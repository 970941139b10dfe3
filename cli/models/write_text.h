// heed generate with a model from another program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/models/generate.h"

namespace heed::cli {

struct TextRequest {
  std::string model;
  std::string prompt;
  bool is_chat = false;  // the prompt is a message, to which the model's chat template is applied
  models::GenerateOptions options;
  bool as_json = false;
};

// Prints the text as it is generated and, on stderr, the speed. Throws Interrupted after Ctrl-C.
void write_text(TextRequest request);

}  // namespace heed::cli
