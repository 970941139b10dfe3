// Arbitrary bytes are an index whose files are in its folder, or give a FormatError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "heed/core/error.h"
#include "models/model_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::filesystem::path folder("folder");
    for (const auto& [tensor, file] : heed::models::parse_checkpoint_index(text, "fuzz")) {
      const std::filesystem::path path = (folder / file).lexically_normal();
      if (path.parent_path() != folder || path.filename() != file) std::abort();
    }
  } catch (const heed::FormatError&) {
  }
  return 0;
}
