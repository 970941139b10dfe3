// Reads one or two masks in command-line notation from arbitrary bytes: they are refused with a
// message, or the mask can be described and, if it is for the tested shape, evaluated.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "heed/attention/mask.h"
#include "heed/core/error.h"
#include "mask_argument.h"
#include "verbs.h"

namespace {

namespace cli = heed::cli;

void ask(const heed::Mask& mask) {
  if (mask.description().empty()) std::abort();
  try {
    heed::materialize_block(mask, {.q_len = 5, .kv_len = 5});
  } catch (const heed::InvalidArgument&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto take = [](const auto& parse) {
    try {
      parse();
    } catch (const cli::UsageError& error) {
      if (std::string_view(error.what()).empty()) std::abort();
    }
  };
  take([&] { ask(cli::parse_mask("--mask", text)); });
  const std::size_t half = text.find('\n');
  if (half != std::string_view::npos) {
    take([&] {
      ask(cli::parse_mask("--mask", text.substr(0, half)) &
          cli::parse_mask("--mask", text.substr(half + 1)));
    });
  }
  return 0;
}
