// Reads seals from arbitrary text, as it is and with the check that fits it: refused with a message
// of bounded length, or the seal is written as a text that gives the same seal.
#include "heed/models/seal.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "heed/core/error.h"
#include "io/sha256.h"
#include "models/sealing.h"

namespace {

void read_any_seal(const std::string& text) {
  try {
    const heed::models::Seal seal = heed::models::parse_seal(text);
    if (heed::models::parse_seal(to_string(seal)) != seal) std::abort();
    if (!seal_differences(seal, seal).empty()) std::abort();
  } catch (const heed::InvalidArgument& error) {
    const std::string_view message = error.what();
    constexpr std::size_t kLongest = 300;
    if (message.size() > kLongest || !message.starts_with("parse_seal: ")) std::abort();
    if (message.find_first_of(std::string_view("\0\x1b\r", 3)) != message.npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_any_seal(text);
  const auto hash = heed::io::Sha256().add(std::string_view(text)).finish();
  read_any_seal(text + ':' + heed::models::base64(hash, 4));
  return 0;
}
