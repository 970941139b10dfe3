// Folders that receive files under names that the caller did not choose.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace io {

// Makes a folder and its missing parents. Throws IoError if that fails.
HEED_API void make_folder(const std::filesystem::path& folder);

// Throws IoError if one of the files exists: it may belong to someone else.
HEED_API void refuse_existing(const std::filesystem::path& folder,
                              const std::vector<std::string>& names);

}}}  // namespace heed::v0::io
