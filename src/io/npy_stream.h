// Arrays as streams of bytes, for .npy files and the members of .npz files, and the header of a
// .npy file, which describes the bytes after it.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "heed/core/shape.h"
#include "heed/io/any_tensor.h"
#include "heed/io/npz.h"
#include "io/atomic_file.h"
#include "io/byte_source.h"
#include "io/elements.h"

namespace heed { inline namespace v0 { namespace io {

// The file begins with these six bytes and two bytes of version.
inline constexpr std::string_view kNpyMagic{"\x93NUMPY", 6};

inline constexpr bool kHostIsLittleEndian = std::endian::native == std::endian::little;

struct NpyHeader {
  const ElementType* type = nullptr;
  bool is_byte_swapped = false;  // in the opposite byte order of the host
  bool is_fortran_order = false;
  Shape shape;
};

// Parses the Python dictionary of a header, e.g.
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// It has exactly these three keys, in any order. Otherwise throws FormatError with `file` and the
// position, where `offset` is that of the text in the file.
NpyHeader parse_npy_header(std::string_view text, const std::string& file, std::int64_t offset);

// Returns everything before the elements of a row-major array in the host's byte order: version 1,
// padded so that the elements begin at a multiple of 64 bytes.
std::string format_npy_header(const ElementType& type, const Shape& shape);

// Reads one array that fills `stream`. Throws FormatError if it does not.
AnyTensor read_npy_stream(ByteStream& stream);

// Pass the bytes of a .npy file and of a .npz file to `sink`.
HEED_API void write_npy_stream(const AnyView& array, const ByteSink& sink);
HEED_API void write_npz_stream(const std::map<std::string, AnyView>& arrays,
                               NpzCompression compression, const ByteSink& sink);

}}}  // namespace heed::v0::io
