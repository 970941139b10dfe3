// The part of a GGUF file before the bytes of its tensors.
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
  // The position of the first byte of each key's value, and of the end of the last value.
  std::map<std::string, std::int64_t, std::less<>> value_begin;
  std::int64_t metadata_end = 0;
  std::map<std::string, GgufTensor, std::less<>> tensors;
};

// Parses the header of a whole file; the tensors point into `bytes`. Throws FormatError, which
// names `file`, if the bytes are no GGUF file.
GgufHeader parse_gguf_header(std::span<const std::byte> bytes, const std::string& file);

}}}  // namespace heed::v0::io
