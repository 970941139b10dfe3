// Integers as little-endian bytes.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heed { inline namespace v0 { namespace io {

// Reads fields in sequence. The caller ensures that the bytes exist.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t remaining() const noexcept { return bytes_.size(); }

  template <std::unsigned_integral T>
  T next() {
    T value = 0;
    for (std::size_t i = sizeof(T); i-- > 0;) {
      value = static_cast<T>(static_cast<std::uint64_t>(value) << 8 |
                             std::to_integer<std::uint64_t>(bytes_[i]));
    }
    skip(sizeof(T));
    return value;
  }

  std::span<const std::byte> next_bytes(std::size_t count) {
    const auto bytes = bytes_.first(count);
    skip(count);
    return bytes;
  }

  void skip(std::size_t count) {
    assert(count <= bytes_.size());
    bytes_ = bytes_.subspan(count);
  }

 private:
  std::span<const std::byte> bytes_;
};

// Writes fields in sequence.
class FieldWriter {
 public:
  template <std::unsigned_integral T>
  FieldWriter& add(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> 8 * i));
    }
    return *this;
  }

  FieldWriter& add_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  std::vector<std::byte> take() { return std::move(bytes_); }
  std::size_t size() const noexcept { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

}}}  // namespace heed::v0::io
