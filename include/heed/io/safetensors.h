/// safetensors files: named tensors, the format in which PyTorch models are published.
///
/// Eight bytes give the length of the header; the header, a JSON object, gives each tensor's dtype,
/// shape and offsets; the elements follow without gaps.
/// Source: https://huggingface.co/docs/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "heed/core/config.h"
#include "heed/io/any_tensor.h"

namespace heed { inline namespace v0 {

/// The longest header that is read or written, in bytes: the format's own limit.
inline constexpr std::int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

/// The contents of a safetensors file.
struct Safetensors {
  std::map<std::string, AnyTensor> tensors;
  std::map<std::string, std::string> metadata;  ///< the entry __metadata__
};

/// The contents of the file at `path`. Elements that are not aligned in the file are aligned in
/// memory. Every size is checked against the file's length before memory is allocated for it.
/// @throws FormatError when the file breaks a rule of the format: a header that is longer than
///     kMaxSafetensorsHeaderBytes or than the file, not UTF-8, not one JSON object, that has a name
///     twice, lacks a key or has an unknown one; a shape whose elements do not take the bytes
///     between its offsets; bytes between tensors, in two of them or after the last. Also when heed
///     does not support a tensor: another dtype (the 8-bit floats), more than kMaxRank dimensions,
///     a bool
///     that is neither 0 nor 1.
/// @throws IoError when the file cannot be opened or read, or is not a regular file.
HEED_API Safetensors read_safetensors(const std::filesystem::path& path);

/// read_safetensors() of the bytes of a file. `name` is the file's name in error messages.
/// @throws FormatError as read_safetensors().
HEED_API Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

/// Writes the named tensors to the file at `path`, which is replaced as a whole as by write_npy():
/// a process that is killed while writing leaves the old file or the new one. The same tensors give
/// the same bytes: tensors are sorted by falling element size, for alignment, then by name.
/// @throws InvalidArgument when a name or metadata is not UTF-8, a name is "__metadata__", or the
///     header would be too long.
/// @throws IoError as write_npy().
HEED_API void write_safetensors(const std::filesystem::path& path,
                                const std::map<std::string, AnyView>& tensors,
                                const std::map<std::string, std::string>& metadata = {});

}}  // namespace heed::v0
