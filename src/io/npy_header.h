// The header of a .npy file: what the bytes after it are.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "heed/core/shape.h"
#include "io/element_type.h"

namespace heed { inline namespace v0 { namespace io {

// The file begins with these six bytes and two for the version.
inline constexpr std::string_view kNpyMagic{"\x93NUMPY", 6};

inline constexpr bool kHostIsLittleEndian = std::endian::native == std::endian::little;

struct NpyHeader {
  const ElementType* type = nullptr;
  bool is_byte_swapped = false;  // relative to the host
  bool is_fortran_order = false;
  Shape shape;
};

// Reads the Python dictionary of a header, e.g.
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
// Exactly these three keys, in any order. `file` and `offset`, where the text begins in the file,
// are for the FormatError thrown when it is anything else.
NpyHeader parse_npy_header(std::string_view text, const std::string& file, std::int64_t offset);

// Everything before the elements of a row-major array in the host's byte order, version 1, padded
// so that the elements begin at a multiple of 64 bytes.
std::string format_npy_header(const ElementType& type, const Shape& shape);

}}}  // namespace heed::v0::io
