// Any bytes are an archive of arrays or a FormatError; tests/data/npy is a good corpus to start
// from.
#include "heed/io/npz.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "heed/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    heed::parse_npz(std::as_bytes(std::span(data, size)), "fuzz.npz");
  } catch (const heed::FormatError&) {
  }
  return 0;
}
