// GGUF files that llama.cpp's gguf-split has divided: NAME-00001-of-00003.gguf and so on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "heed/io/gguf.h"

namespace heed { inline namespace v0 { namespace io {

// The number of parts of which a file says that it is one.
std::int64_t num_gguf_parts(const GgufFile& file);

// The files of the other parts, which are beside the first. Throws FormatError if `first` is
// another part, or its name is not that of a first part.
std::vector<std::filesystem::path> other_gguf_parts(const GgufFile& first);

// Opens part `index`, counted from 0, of `count`. Throws FormatError if the file says that it is
// another, IoError if there is none.
GgufFile open_gguf_part(const std::filesystem::path& path, std::int64_t index, std::int64_t count);

// Throws FormatError unless all parts together have as many tensors as the first says.
void check_num_tensors(const GgufFile& first, std::int64_t found);

}}}  // namespace heed::v0::io
