// .npy from and to a stream of bytes: the part that .npy files and members of .npz files share.
#pragma once

#include "heed/io/any_tensor.h"
#include "io/atomic_file.h"
#include "io/byte_source.h"

namespace heed::inline v0::io {

// Reads one array that takes up all of `stream`. Throws FormatError when it does not.
AnyTensor read_npy_stream(ByteStream& stream);

// Gives the bytes of a .npy file to `sink`.
void write_npy_stream(const AnyView& array, const ByteSink& sink);

}  // namespace heed::inline v0::io
