#include "io/folder.h"

#include <fmt/format.h>

#include <system_error>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace io {

namespace fs = std::filesystem;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw IoError(fmt::format("cannot make the folder '{}': {}", folder.string(), error.message()));
  }
}

void refuse_existing(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(folder / name, ignored))) continue;
    throw IoError(fmt::format("'{}' holds '{}' already, which is not replaced; name another folder",
                              folder.string(), name));
  }
}

}}}  // namespace heed::v0::io
