/// Number formats in which a cache stores keys and values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// The number format of the keys or of the values of a cache. Sums are float32; for int8 and int4
/// they are exact integer sums, converted to float32.
enum class KvStorage : std::uint8_t {
  kFloat32,
  kFloat16,   ///< rounded to nearest even; infinity beyond ±65504
  kBFloat16,  ///< rounded to nearest even
  kInt8,      ///< −127 … 127 times a float32 scale for each position and key head, max|x| / 127
  /// −7 … 7 times a float32 scale for each 32 dimensions of a position and key head, max|x| / 7.
  /// The row is first padded with 0 to a multiple of 32 dimensions and rotated by an orthonormal
  /// Walsh–Hadamard transform, in blocks of the largest power of two that divides this multiple.
  /// The rotation spreads large values in a few dimensions over the whole block. Source: Ashkboos
  /// et al., "QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs", 2024.
  kInt4,
};

/// All of them.
inline constexpr std::array kKvStorages{KvStorage::kFloat32, KvStorage::kFloat16,
                                        KvStorage::kBFloat16, KvStorage::kInt8, KvStorage::kInt4};

/// The name of a storage: "float32", "float16", "bfloat16", "int8" or "int4".
HEED_API std::string_view to_string(KvStorage storage) noexcept;

/// The storage of that name, as to_string() returns it.
/// @param argument the function and argument that errors name
/// @throws InvalidArgument that lists the names when the name is none of them
HEED_API KvStorage parse_kv_storage(std::string_view name,
                                    std::string_view argument = "parse_kv_storage: name");

}}  // namespace heed::v0
