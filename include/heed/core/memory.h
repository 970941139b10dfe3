/// Reuse of freed memory for tensors.
#pragma once

#include <cstddef>
#include <memory>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// The most bytes of freed tensors and workspaces that are kept for reuse: 64 MiB unless set, 0
/// under AddressSanitizer, which otherwise could not detect reads of freed memory.
///
/// The system provides memory page by page, with a page fault at the first write of each: for the
/// gradients of 8 heads of 256 tokens, faults take a quarter of the time. A kept block is reused
/// for requests of its size or of at least 7/8 of it; when the limit is reached, the blocks freed
/// first are released. Blocks of more than 4 MiB are not kept. 0 keeps nothing.
HEED_API std::size_t max_kept_memory() noexcept;

/// Sets max_kept_memory() for the process, and releases kept memory beyond it.
HEED_API void set_max_kept_memory(std::size_t bytes) noexcept;

/// The number of bytes that are kept now.
HEED_API std::size_t kept_memory() noexcept;

namespace detail {

/// Memory that begins at a cache line of 64 bytes.
struct MemoryBlock {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// A block of at least `bytes`, uninitialised. @throws std::bad_alloc when there is no memory.
HEED_API MemoryBlock take_memory(std::size_t bytes);
HEED_API void give_back_memory(const MemoryBlock& block) noexcept;

/// A deleter that gives back the block of an object.
struct GiveBack {
  std::size_t bytes = 0;

  void operator()(void* data) const noexcept { give_back_memory({data, bytes}); }
};
template <class T>
using Memory = std::unique_ptr<T, GiveBack>;

/// take_memory() as an owning pointer; null for 0 bytes.
template <class T>
Memory<T> take_memory_for(std::size_t bytes) {
  if (bytes == 0) return {};
  const MemoryBlock block = take_memory(bytes);
  return {static_cast<T*>(block.data), GiveBack{block.bytes}};
}

}  // namespace detail

}}  // namespace heed::v0
