/// Memory in large pages.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace heed { inline namespace v0 {

/// Asks for large pages (2 MiB) where [data, data + bytes), which must not have been written to,
/// contains whole ones: a tensor of 51 MB then causes 25 page faults when it is first written,
/// instead of 12,500. Does nothing for small memory, and on systems without large pages.
void prefer_huge_pages(void* data, std::size_t bytes) noexcept;

/// Frees memory that was allocated with this alignment.
struct DeallocateAligned {
  std::align_val_t alignment{1};

  void operator()(std::byte* memory) const noexcept { ::operator delete[](memory, alignment); }
};
using AlignedBytes = std::unique_ptr<std::byte[], DeallocateAligned>;

/// Allocates uninitialised bytes, aligned to a cache line, or to a large page if there are enough
/// for one.
/// @throws std::bad_alloc
AlignedBytes allocate_in_huge_pages(std::size_t bytes);

}}  // namespace heed::v0
