// The header of a safetensors file, which describes the bytes after it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "heed/core/shape.h"
#include "io/byte_source.h"
#include "io/elements.h"

namespace heed { inline namespace v0 { namespace io {

// The name of the entry that is not a tensor.
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

// The number of bytes before the header; they hold its length.
inline constexpr std::int64_t kSafetensorsPrefix = 8;

struct SafetensorsEntry {
  const ElementType* type = nullptr;
  Shape shape;
  std::int64_t begin = 0;  // from the end of the header
  std::int64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

// Reads the text of a file's header. Throws FormatError if the file is too short for it or the
// header is longer than kMaxSafetensorsHeaderBytes.
std::string read_safetensors_header(ByteSource& file);

// Parses a header that is followed by `data_bytes` bytes. Throws FormatError, which names `file`,
// unless the elements of every entry take exactly the bytes between its offsets and the entries
// together cover the data, each byte once.
SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& file,
                                           std::int64_t data_bytes);

}}}  // namespace heed::v0::io
