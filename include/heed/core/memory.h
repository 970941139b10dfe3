/// Reuse of freed memory for tensors.
#pragma once

#include <cstddef>

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

}}  // namespace heed::v0
