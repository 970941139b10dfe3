/// NumPy's .npz files: zip archives with one .npy file for each named array.
///
/// Stored and deflated members and zip64 sizes are read and written; every CRC is checked.
/// Source: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
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

/// The default limit on the bytes that the deflated members of an archive may inflate to together:
/// 4 GiB.
inline constexpr std::int64_t kDefaultMaxInflatedBytes = std::int64_t{4} << 30;

/// All arrays of the archive at `path` by name, which is the member's name without ".npy".
/// @param max_inflated_bytes limit on the inflated bytes of all members together
/// @throws FormatError when the archive is damaged, contradicts itself or is refused: an encrypted
///     member, another compression method, a name that is absolute, leaves the archive or occurs
///     twice, a member that is not an .npy file, bytes that belong to two members or to none, more
///     inflated bytes than allowed or than deflate can produce. For a problem inside a member
///     the error's file is "archive/member" and its byte counts from the start of the member.
/// @throws IoError when the file cannot be opened or read, or is not a regular file.
HEED_API std::map<std::string, AnyTensor> read_npz(
    const std::filesystem::path& path, std::int64_t max_inflated_bytes = kDefaultMaxInflatedBytes);

/// read_npz() of the bytes of a file. `name` is the file's name in error messages.
/// @throws FormatError as read_npz().
HEED_API std::map<std::string, AnyTensor> parse_npz(
    std::span<const std::byte> bytes, const std::string& name,
    std::int64_t max_inflated_bytes = kDefaultMaxInflatedBytes);

/// How the members of an archive are written.
enum class NpzCompression {
  kStored,    ///< uncompressed, like numpy.savez
  kDeflated,  ///< compressed, like numpy.savez_compressed
};

/// Writes the named arrays to an archive at `path`, which is replaced as a whole as by write_npy().
/// The same arrays give the same bytes: members are sorted by name and have no time stamp.
/// @throws InvalidArgument when a name is empty, absolute, leaves the archive, is not UTF-8, has
///     control characters or is longer than 65,531 bytes, or when elements are bfloat16.
/// @throws IoError as write_npy().
HEED_API void write_npz(const std::filesystem::path& path,
                        const std::map<std::string, AnyView>& arrays,
                        NpzCompression compression = NpzCompression::kStored);

}}  // namespace heed::v0
