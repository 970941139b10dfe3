// Rows of numbers as a page stores them: the one place that writes and reads these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/cache/page_layout.h"
#include "attention/kernels/kernels.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 { namespace detail {

// The largest |number|: infinity or NaN where one of them is not finite.
float largest_magnitude(const float* numbers, std::int64_t count);

// Position `slot` of a page becomes this row of stored_dim numbers, which are finite where they are
// quantised.
void store_row(const SideLayout& side, PagePart<std::byte> part, std::int64_t slot,
               const float* row);

// The positions `slots` as rows of stored_dim numbers without gaps. The kernels of `table`, unless
// it is null, make it faster.
void load_rows(const kernels::KernelTable* table, const SideLayout& side,
               PagePart<const std::byte> part, RowRange slots, float* rows);

// Position `to` becomes what is stored at position `from`, bit by bit. Both parts may be the same.
void copy_row(const SideLayout& side, PagePart<const std::byte> from_part, std::int64_t from,
              PagePart<std::byte> to_part, std::int64_t to);

}}}  // namespace heed::v0::detail
