// Arbitrary bytes are an archive of arrays or give a FormatError, also with a low limit for
// inflated bytes. Writing the arrays gives an archive of the same arrays. tests/data/npy is a good
// corpus to start from.
#include "heed/io/npz.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "io/npy_stream.h"

namespace {

using heed::NpzCompression;

std::vector<std::byte> bytes_of(const std::map<std::string, heed::AnyTensor>& arrays,
                                NpzCompression compression) {
  std::map<std::string, heed::AnyView> views;
  for (const auto& [name, array] : arrays) views.emplace(name, heed::view(array));
  std::vector<std::byte> bytes;
  heed::io::write_npz_stream(views, compression, [&](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  });
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto archive = std::as_bytes(std::span(data, size));
    const auto arrays = heed::parse_npz(archive, "fuzz.npz");
    for (const auto compression : {NpzCompression::kStored, NpzCompression::kDeflated}) {
      const auto written = bytes_of(arrays, compression);
      if (bytes_of(heed::parse_npz(written, "again.npz"), compression) != written) std::abort();
    }
    constexpr std::int64_t kLittle = 4096;
    heed::parse_npz(archive, "fuzz.npz", kLittle);
  } catch (const heed::FormatError&) {
  }
  return 0;
}
