/// How a cache stores the numbers of keys and values.
#pragma once

#include <cstdint>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// Keys and values of a cache may be stored in different ways. Sums are in float32, of int8 and
/// int4 exact sums of whole numbers that become float32.
enum class KvStorage : std::uint8_t {
  kFloat32,
  kFloat16,   ///< rounded to nearest even; beyond ±65504 infinity
  kBFloat16,  ///< rounded to nearest even
  kInt8,      ///< −127 … 127 times a float32 scale for each position and key head, max|x| / 127
  /// −7 … 7 times a float32 scale for each 32 dimensions of a position and key head, max|x| / 7.
  /// Before, the row is filled up with 0 to a multiple of 32 dimensions and rotated by an
  /// orthonormal Walsh–Hadamard transform, in blocks of the largest power of two that divides this
  /// multiple: what is large in a few dimensions is then spread over all of a block. Source:
  /// Ashkboos et al., "QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs", 2024.
  kInt4,
};

/// "float32", "float16", "bfloat16", "int8" or "int4".
HEED_API std::string_view to_string(KvStorage storage) noexcept;

/// The storage of that name, as to_string() has it.
/// @param argument what errors call the name: whose function, and which argument of it
/// @throws InvalidArgument that lists the names when there is none such
HEED_API KvStorage parse_kv_storage(std::string_view name,
                                    std::string_view argument = "parse_kv_storage: name");

}}  // namespace heed::v0
