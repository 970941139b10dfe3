/// NumPy's .npy files, which hold one array each.
///
/// Format versions 1, 2 and 3, C and Fortran order, little and big endian can be read; bool, int8 …
/// int64, uint8 … uint64, float16, float32, float64. bfloat16 has no dtype in NumPy and is not
/// supported. Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "heed/core/config.h"
#include "heed/io/any_tensor.h"

namespace heed { inline namespace v0 {

/// The longest header that is read, in bytes. Six dimensions need about 200.
inline constexpr std::int64_t kMaxNpyHeaderBytes = 65535;

/// The array in the file at `path`, in row-major order and the host's byte order.
/// Every size is checked against the file's length before memory is allocated for it.
/// @throws FormatError when the file is not exactly one array of a supported kind: another dtype
///     (object arrays, which are pickled Python, are never read), more than kMaxRank dimensions,
///     missing or trailing bytes, a bool that is neither 0 nor 1.
/// @throws IoError when the file cannot be opened or read, or is not a regular file.
HEED_API AnyTensor read_npy(const std::filesystem::path& path);

/// read_npy() of the bytes of a file. `name` is the file's name in error messages.
/// @throws FormatError as read_npy().
HEED_API AnyTensor parse_npy(std::span<const std::byte> bytes, const std::string& name);

/// Writes `array`, of any strides, to the file at `path` in row-major order. The bytes go to a
/// temporary file in the same folder, which is renamed to `path` once it is complete and on disk:
/// at any moment `path` has its old contents or all of the new array.
/// @throws InvalidArgument when the elements are bfloat16.
/// @throws IoError when a file cannot be created, written or renamed, or when `path` exists and is
///     not a regular file; the temporary file is removed.
HEED_API void write_npy(const std::filesystem::path& path, const AnyView& array);

}}  // namespace heed::v0
