// GGUF files that llama.cpp's gguf-split has divided: NAME-00001-of-00003.gguf and so on.
#pragma once

#include <filesystem>
#include <vector>

#include "heed/io/gguf.h"

namespace heed { inline namespace v0 { namespace models {

// Opens a GGUF file, and the files beside it that hold its other parts. The first file has the
// metadata of the model. Throws FormatError if `path` is another part than the first, or the parts
// do not fit together; IoError if a part is missing.
std::vector<GgufFile> open_gguf_parts(const std::filesystem::path& path);

// Throws FormatError if the file is one of several parts.
void check_is_whole(const GgufFile& file);

}}}  // namespace heed::v0::models
