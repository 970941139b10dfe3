// Reads masks from arbitrary text: refused with a message of bounded length that shows the place,
// or the mask describes itself by a text that gives the same mask.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "heed/attention/mask.h"
#include "heed/attention/mask_text.h"
#include "heed/core/error.h"

namespace {

// Evaluates a few scores; the mask may be for other lengths.
void ask_mask(const heed::Mask& mask) {
  try {
    const heed::ScoreShape shape{.q_len = 3, .kv_len = 3};
    if (heed::count_visible(mask, shape) > 9) std::abort();
    heed::to_lines(mask, shape);
  } catch (const heed::InvalidArgument&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const heed::Mask mask = heed::parse_mask(text);
    constexpr std::size_t kLongestText =
        4096;  // a longer text may name more masks than are allowed
    const std::string description = mask.description();
    if (size <= kLongestText && heed::parse_mask(description).description() != description)
      std::abort();
    ask_mask(mask);
  } catch (const heed::InvalidArgument& error) {
    const std::string_view message = error.what();
    constexpr std::size_t kLongest = 1000;
    if (message.size() > kLongest || !message.starts_with("parse_mask: ")) std::abort();
    if (message.find_first_of(std::string_view("\0\x1b\r", 3)) != message.npos) std::abort();
  }
  return 0;
}
