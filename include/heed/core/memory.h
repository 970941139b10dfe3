/// Memory of tensors: what was freed last is kept for those to come.
#pragma once

#include <cstddef>
#include <memory>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// How many bytes that tensors and calls of attention gave back are kept for the next ones, at
/// most: 64 MiB unless set, 0 under AddressSanitizer, which would not see who still reads them.
///
/// The system gives memory page by page, each with a fault when it is first written: for the
/// gradients of 8 heads of 256 tokens a quarter of the time. A block that is kept is taken again by
/// whatever needs as much, or at most an eighth less; those freed first make room for others.
/// Blocks of more than 4 MiB are not kept. 0 keeps nothing.
HEED_API std::size_t max_kept_memory() noexcept;

/// Sets max_kept_memory() for the process, and gives back to the system what is beyond it.
HEED_API void set_max_kept_memory(std::size_t bytes) noexcept;

/// How many bytes are kept now.
HEED_API std::size_t kept_memory() noexcept;

namespace detail {

/// Memory that begins a cache line, of 64 bytes.
struct MemoryBlock {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// A block of `bytes` or more, of any content. @throws std::bad_alloc when there is no memory.
HEED_API MemoryBlock take_memory(std::size_t bytes);
HEED_API void give_back_memory(const MemoryBlock& block) noexcept;

/// Gives back the block that an object begins.
struct GiveBack {
  std::size_t bytes = 0;

  void operator()(void* data) const noexcept { give_back_memory({data, bytes}); }
};
template <class T>
using Memory = std::unique_ptr<T, GiveBack>;

/// The same as what is owned; nothing for no bytes.
template <class T>
Memory<T> take_memory_for(std::size_t bytes) {
  if (bytes == 0) return {};
  const MemoryBlock block = take_memory(bytes);
  return {static_cast<T*>(block.data), GiveBack{block.bytes}};
}

}  // namespace detail

}}  // namespace heed::v0
