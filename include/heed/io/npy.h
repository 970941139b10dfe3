/// NumPy's .npy files: one array each.
///
/// Read: format versions 1, 2 and 3, C and Fortran order, little and big endian; bool, int8 …
/// int64, uint8 … uint64, float16, float32, float64. bfloat16 has no dtype in NumPy and so none
/// here. Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
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
/// @throws FormatError when the file is not exactly one such array: another dtype (object arrays,
///     which are pickled Python, are never read), more than kMaxRank dimensions, missing or
///     trailing bytes, a bool that is neither 0 nor 1.
/// @throws IoError when the file cannot be opened or read, or is not a regular file.
HEED_API AnyTensor read_npy(const std::filesystem::path& path);

/// The same from the bytes of a file. `name` stands for the file in error messages.
/// @throws FormatError as read_npy().
HEED_API AnyTensor parse_npy(std::span<const std::byte> bytes, const std::string& name);

/// Writes `array` to the file at `path`, in row-major order whatever its strides. The bytes go to a
/// temporary file in the same folder that takes the name `path` once it is complete and on disk:
/// at any moment `path` holds what it held before or all of the new array.
/// @throws InvalidArgument when the elements are bfloat16.
/// @throws IoError when a file cannot be created, written or renamed, or when `path` exists and is
///     not a regular file; the temporary file is removed.
HEED_API void write_npy(const std::filesystem::path& path, const AnyView& array);

}}  // namespace heed::v0
