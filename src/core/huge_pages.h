/// Memory that the system gives in large pages.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace heed { inline namespace v0 {

/// Asks for large pages (2 MiB) where [data, data + bytes), not yet written to, holds whole ones:
/// a tensor of 51 MB is then 25 faults on its first writing instead of 12,500. Small memory, and
/// systems without such pages, are left as they are.
void prefer_huge_pages(void* data, std::size_t bytes) noexcept;

/// Gives memory back that was allocated with this alignment.
struct DeallocateAligned {
  std::align_val_t alignment{1};

  void operator()(std::byte* memory) const noexcept { ::operator delete[](memory, alignment); }
};
using AlignedBytes = std::unique_ptr<std::byte[], DeallocateAligned>;

/// Bytes of any value that begin a cache line, or a large page where they fill one.
/// @throws std::bad_alloc
AlignedBytes allocate_in_huge_pages(std::size_t bytes);

}}  // namespace heed::v0
