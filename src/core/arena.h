// Memory of the engine: sizes are added up first, memory is taken once, pieces are found in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "heed/core/config.h"
#include "heed/core/memory.h"
#include "heed/core/shape.h"

namespace heed { inline namespace v0 { namespace engine {

// Where pieces begin: a vector then lies in one cache line.
inline constexpr std::size_t kCacheLine = 64;

// Room for some objects, at the same place in every memory of one layout.
template <class T>
struct Piece {
  std::size_t offset = 0;
  std::int64_t count = 0;

  // Null for an empty piece.
  T* in(std::byte* memory) const {
    return count == 0 ? nullptr : reinterpret_cast<T*>(memory + offset);
  }
};

// Sizes, added up.
class Layout {
 public:
  // Room for `count` objects, which nobody has constructed yet.
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

// The pieces of several things that are laid out alike. Parts is constructed from what it is for
// and the layout to which it adds its pieces.
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

  // The memory of the i-th, in which `parts` find their places.
  std::byte* at(std::byte* memory, std::int64_t i) const {
    return memory + offset + static_cast<std::size_t>(i) * size;
  }
};

// Memory of one call: the caller's, on the stack if it is small, or allocated.
class Arena {
 public:
  // What a layout needs at most, wherever its memory begins.
  static std::size_t bytes_for(const Layout& layout) { return layout.bytes() + kCacheLine; }

  // `given` is empty or has bytes_for(layout). Nothing is initialised.
  explicit Arena(const Layout& layout, std::span<std::byte> given = {}) {
    std::byte* memory = given.data();
    if (given.empty()) {
      const std::size_t bytes = bytes_for(layout);
      if (bytes > stack_.size()) allocated_ = detail::take_memory_for<std::byte>(bytes);
      memory = allocated_ != nullptr ? allocated_.get() : stack_.data();
    }
    void* address = memory;
    std::size_t space = 2 * kCacheLine;
    memory_ = static_cast<std::byte*>(std::align(kCacheLine, 1, address, space));
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* memory() const { return memory_; }

 private:
  // The memory of a small call: not worth an allocation.
  static constexpr std::size_t kStackBytes = 16384;

  std::byte* memory_;
  detail::Memory<std::byte> allocated_;
  std::array<std::byte, kStackBytes> stack_;
};

}}}  // namespace heed::v0::engine
