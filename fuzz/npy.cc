// Any bytes are an array or a FormatError; tests/data/npy is a good corpus to start from.
#include "heed/io/npy.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "heed/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto tensor = heed::parse_npy(std::as_bytes(std::span(data, size)), "fuzz.npy");
    heed::to_float(tensor);
    heed::to_double(tensor);
  } catch (const heed::FormatError&) {
  }
  return 0;
}
