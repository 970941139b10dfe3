// heed explain --model: the attention of a trained model on the user's text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "picture_file.h"

namespace heed::cli {

struct ModelExplanation {
  std::string model;
  std::string text;
  std::optional<std::string> pair;
  std::optional<std::int64_t> layer;  // by default the last; in files all layers
  std::optional<std::int64_t> head;
  std::string out;
  PictureArguments picture;
  bool as_json = false;
};

void explain_model(const ModelExplanation& request);

}  // namespace heed::cli
