// Groups of rows of 4-bit weights, such that one vector load reads the same columns of adjacent
// rows. A product then sums rows in lanes, converts their scales together, and needs one
// instruction per nibble instead of two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/kernels/weight_kernels.h"

namespace heed { inline namespace v0 { namespace models {

// True if products of a few rows of numbers use groups for this type.
bool wants_groups(WeightType type);

// Returns the bytes of w in consecutive groups of kGroupRows rows. Each block of columns is split
// into pieces: first the two-byte numbers at its beginning, then four pieces of four bytes. The
// same piece of all rows comes before the next piece. Rows that the last group lacks are zero.
std::vector<std::byte> group_rows(const WeightRows& w);

// The bytes of columns first ≤ c < first + count of a row in the layout of files; the columns are
// whole blocks. Points into w, or for groups to a copy in `memory`.
const std::byte* stored_columns(const WeightRows& w, std::int64_t row, std::int64_t first,
                                std::int64_t count, std::byte* memory);

// Puts the numbers of a row in the column order of groups: nibble k of a four-byte word belongs to
// number k of eight. Each number except the eighth is divided by 16ᵏ, so that the nibble need not
// be shifted. Exact for numbers of at least 2⁻¹⁰².
void arrange_numbers(const float* x, std::int64_t count, float* arranged);

}}}  // namespace heed::v0::models
