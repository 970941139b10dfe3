// Models, which turn a piece of a text into tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/token_table.h"

namespace heed { inline namespace v0 { namespace text {

// A token, and the bytes of the piece that it covers.
struct PieceToken {
  std::int64_t id;
  std::size_t begin;
  std::size_t end;
};

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  // Appends the tokens of a piece, which is valid UTF-8 and not empty, to `tokens`, which is empty.
  virtual void tokenize(std::string_view piece, std::vector<PieceToken>& tokens) const = 0;
};

}}}  // namespace heed::v0::text
