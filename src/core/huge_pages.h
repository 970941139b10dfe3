/// Memory that the system gives in large pages.
#pragma once

#include <cstddef>

namespace heed::inline v0 {

/// Asks for large pages (2 MiB) where [data, data + bytes), not yet written to, holds whole ones:
/// a tensor of 51 MB is then 25 faults on its first writing instead of 12,500. Small memory, and
/// systems without such pages, are left as they are.
void prefer_huge_pages(void* data, std::size_t bytes) noexcept;

}  // namespace heed::inline v0
