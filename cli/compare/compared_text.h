// A text of which the last quarter is held out.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "train/characters.h"
#include "train/language_model.h"

namespace heed::cli {

struct ComparedText {
  explicit ComparedText(std::string_view text) : characters(text), ids(characters.encode(text)) {}

  Characters characters;
  std::vector<std::int32_t> ids;

  std::size_t num_learned() const { return ids.size() - ids.size() / 4; }
  Ids learned() const { return Ids(ids).first(num_learned()); }
  Ids held_out() const { return Ids(ids).subspan(num_learned()); }
};

}  // namespace heed::cli
