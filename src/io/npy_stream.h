// Reads and writes arrays as streams of bytes, for .npy files and the members of .npz files.
#pragma once

#include <map>
#include <string>

#include "heed/io/any_tensor.h"
#include "heed/io/npz.h"
#include "io/atomic_file.h"
#include "io/byte_source.h"

namespace heed { inline namespace v0 { namespace io {

// Reads one array that fills `stream`. Throws FormatError if it does not.
AnyTensor read_npy_stream(ByteStream& stream);

// Pass the bytes of a .npy file and of a .npz file to `sink`.
HEED_API void write_npy_stream(const AnyView& array, const ByteSink& sink);
HEED_API void write_npz_stream(const std::map<std::string, AnyView>& arrays,
                               NpzCompression compression, const ByteSink& sink);

}}}  // namespace heed::v0::io
