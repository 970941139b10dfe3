// SHA-256 of bytes (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace io {

using Sha256Digest = std::array<std::byte, 32>;

// Hashes bytes as they come.
class HEED_API Sha256 {
 public:
  Sha256& add(std::span<const std::byte> bytes);
  Sha256& add(std::string_view text);
  // Eight bytes, little-endian.
  Sha256& add_integer(std::int64_t number);
  // Four bytes a number, little-endian. All NaN are hashed as one, 0x7fc00000.
  Sha256& add_floats(std::span<const float> numbers);

  // The hash of all bytes so far. Call it once, at the end.
  Sha256Digest finish();

 private:
  static constexpr std::size_t kBlockBytes = 64;

  // Hashes whole blocks.
  void take(const std::byte* blocks, std::size_t count);

  std::array<std::uint32_t, 8> state_{0x6a09e667U, 0xbb67ae85U, 0x3c6ef372U, 0xa54ff53aU,
                                      0x510e527fU, 0x9b05688cU, 0x1f83d9abU, 0x5be0cd19U};
  std::array<std::byte, kBlockBytes> rest_{};  // bytes that fill no block yet
  std::size_t rest_size_ = 0;
  std::uint64_t size_ = 0;  // of all bytes
};

// The hash of `bytes`.
HEED_API Sha256Digest sha256(std::span<const std::byte> bytes);

// Two lower-case digits for each byte.
HEED_API std::string to_hex(std::span<const std::byte> bytes);

}}}  // namespace heed::v0::io
