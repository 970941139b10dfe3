// The only functions that write and read rows of numbers in pages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/cache/page_layout.h"
#include "attention/kernels/kernels.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 { namespace detail {

// The largest |number|; infinity or NaN if a number is not finite.
float largest_magnitude(const float* numbers, std::int64_t count);

// Stores this row of stored_dim numbers at position `slot` of a page. For quantised storage they
// must be finite.
void store_row(const SideLayout& side, PagePart<std::byte> part, std::int64_t slot,
               const float* row);

// Reads the positions `slots` as contiguous rows of stored_dim numbers. Unless it is null, `table`
// has kernels that make this faster.
void load_rows(const kernels::KernelTable* table, const SideLayout& side,
               PagePart<const std::byte> part, RowRange slots, float* rows);

// Copies the stored bits of position `from` to position `to`. Both parts may be the same.
void copy_row(const SideLayout& side, PagePart<const std::byte> from_part, std::int64_t from,
              PagePart<std::byte> to_part, std::int64_t to);

}}}  // namespace heed::v0::detail
