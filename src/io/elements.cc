#include "io/elements.h"

#include <fmt/format.h>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace io {

void check_bools(std::span<const std::byte> bytes, const std::string& file, std::int64_t offset) {
  const auto wrong =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (wrong == bytes.end()) return;
  throw FormatError(file, offset + (wrong - bytes.begin()),
                    fmt::format("a bool is {}, expected 0 or 1", std::to_integer<int>(*wrong)));
}

}}}  // namespace heed::v0::io
