// A small JSON file of a model's folder, read as a whole.
#pragma once

#include <filesystem>
#include <string>

#include "io/json_value.h"
#include "io/text_file.h"

namespace heed { inline namespace v0 { namespace models {

// Owns the text and the tree that its parts refer to.
class JsonDocument {
 public:
  // Throws FormatError if the file is not JSON, IoError if it cannot be read.
  explicit JsonDocument(const std::filesystem::path& path)
      : file_(path.string()), value_(io::parse_json(io::read_text_file(path), file_)) {}
  io::JsonPart root() const { return {file_, value_}; }

 private:
  std::string file_;
  io::JsonValue value_;
};

}}}  // namespace heed::v0::models
