// Arbitrary bytes are an array or give a FormatError, and writing the array gives bytes of the same
// array. tests/data/npy is a good corpus to start from.
#include "heed/io/npy.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "heed/core/error.h"
#include "io/npy_stream.h"

namespace {

std::vector<std::byte> bytes_of(const heed::AnyTensor& tensor) {
  std::vector<std::byte> bytes;
  heed::io::write_npy_stream(heed::view(tensor), [&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  });
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto tensor = heed::parse_npy(std::as_bytes(std::span(data, size)), "fuzz.npy");
    heed::to_float(tensor);
    heed::to_double(tensor);
    const auto written = bytes_of(tensor);
    if (bytes_of(heed::parse_npy(written, "again.npy")) != written) std::abort();
  } catch (const heed::FormatError&) {
  }
  return 0;
}
