// What a GGUF file says before its tensors' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "heed/io/gguf.h"

namespace heed { inline namespace v0 { namespace io {

struct GgufHeader {
  std::map<std::string, GgufValue, std::less<>> metadata;
  // The byte at which a key's value begins, and the one at which the last value ends.
  std::map<std::string, std::int64_t, std::less<>> value_begin;
  std::int64_t metadata_end = 0;
  std::map<std::string, GgufTensor, std::less<>> tensors;
};

// Reads the bytes of a whole file, which the tensors' bytes then point into. `file` is for the
// FormatError thrown when they are anything else.
GgufHeader parse_gguf_header(std::span<const std::byte> bytes, const std::string& file);

}}}  // namespace heed::v0::io
