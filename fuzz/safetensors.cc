// Arbitrary bytes are named tensors or give a FormatError.
#include "heed/io/safetensors.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "heed/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto file = heed::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& [name, tensor] : file.tensors) heed::to_float(tensor);
  } catch (const heed::FormatError&) {
  }
  return 0;
}
