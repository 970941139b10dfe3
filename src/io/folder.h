// Folders in which files are written under names that the caller did not choose.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace io {

// Makes a folder, and those around it, where it is missing. Throws IoError when it cannot be made.
HEED_API void make_folder(const std::filesystem::path& folder);

// Throws IoError when one of the files is there, for it may be somebody else's.
HEED_API void refuse_existing(const std::filesystem::path& folder,
                              const std::vector<std::string>& names);

}}}  // namespace heed::v0::io
