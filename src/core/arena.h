// The memory of the engine: sizes are added first, memory is allocated once, and pieces are places
// in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "heed/core/config.h"
#include "heed/core/shape.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace engine {

// The alignment of pieces: a vector then lies within one cache line.
inline constexpr std::size_t kCacheLine = 64;

// Room for some objects, at the same offset in all memory of one layout.
template <class T>
struct Piece {
  std::size_t offset = 0;
  std::int64_t count = 0;

  // Null for an empty piece.
  T* in(std::byte* memory) const {
    return count == 0 ? nullptr : reinterpret_cast<T*>(memory + offset);
  }
};

// The sum of the sizes of pieces.
class Layout {
 public:
  // Adds room for `count` objects, which are not constructed.
  template <class T>
  Piece<T> add(std::int64_t count) {
    const Piece<T> piece{bytes_, count};
    add_bytes(checked_multiply(count, sizeof(T)));
    return piece;
  }

  std::size_t bytes() const { return bytes_; }

 private:
  template <class>
  friend struct Repeated;

  void add_bytes(std::int64_t bytes) {
    bytes_ += (static_cast<std::size_t>(bytes) + kCacheLine - 1) / kCacheLine * kCacheLine;
  }

  std::size_t bytes_ = 0;
};

// The pieces of several objects with the same layout. Parts is constructed from some arguments and
// the layout to which it adds its pieces.
template <class Parts>
struct Repeated {
  Parts parts;
  std::size_t offset = 0;
  std::size_t size = 0;

  Repeated() = default;
  template <class Purpose>
  Repeated(const Purpose& purpose, std::int64_t count, Layout& layout) : offset(layout.bytes()) {
    Layout one;
    parts = Parts(purpose, one);
    size = one.bytes();
    layout.add_bytes(checked_multiply(count, static_cast<std::int64_t>(size)));
  }

  // The memory of object i, to which the pieces of `parts` refer.
  std::byte* at(std::byte* memory, std::int64_t i) const {
    return memory + offset + static_cast<std::size_t>(i) * size;
  }
};

// The memory of one call: the caller's, on the stack if it is small, or allocated.
class Arena {
 public:
  // The memory that a layout needs at most, whatever its alignment.
  static std::size_t bytes_for(const Layout& layout) { return layout.bytes() + kCacheLine; }

  // `given` is empty or has bytes_for(layout). Memory is not initialised.
  explicit Arena(const Layout& layout, std::span<std::byte> given = {}) {
    std::byte* memory = given.data();
    if (given.empty()) {
      const std::size_t bytes = bytes_for(layout);
      if (bytes > stack_.size()) allocated_ = detail::Memory(bytes);
      memory = bytes > stack_.size() ? static_cast<std::byte*>(allocated_.get()) : stack_.data();
    }
    void* address = memory;
    std::size_t space = 2 * kCacheLine;
    memory_ = static_cast<std::byte*>(std::align(kCacheLine, 1, address, space));
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* memory() const { return memory_; }

 private:
  // The size of the memory on the stack, below which an allocation is avoided.
  static constexpr std::size_t kStackBytes = 16384;

  std::byte* memory_;
  detail::Memory allocated_;
  std::array<std::byte, kStackBytes> stack_;
};

}}}  // namespace heed::v0::engine
