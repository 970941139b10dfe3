// Rows of weights of four bits in groups, such that one vector loads the same columns of
// neighbouring rows: a product then adds up its rows in the lanes, converts their scales together,
// and needs one instruction for a nibble where a row by itself takes two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/kernels/weight_kernels.h"

namespace heed { inline namespace v0 { namespace models {

// Whether products of a few rows of numbers want this type in groups.
bool wants_groups(WeightType type);

// The bytes of w in groups of kGroupRows rows, which lie one behind the other. Each block of
// columns is taken apart in pieces, the numbers of two bytes that it begins with and then four
// times four bytes; a piece of every row comes before the next piece. Rows that the last group
// lacks are zero.
std::vector<std::byte> group_rows(const WeightRows& w);

// The bytes of columns first ≤ c < first + count of a row as files have them, whole blocks: where
// they are, or of groups in `memory`.
const std::byte* stored_columns(const WeightRows& w, std::int64_t row, std::int64_t first,
                                std::int64_t count, std::byte* memory);

// The numbers of a row in the order in which groups have their columns, so that nibble k of a word
// of four bytes is multiplied with the k-th of eight, each divided by 16ᵏ but for the last: a
// nibble is taken in its place. Exact for numbers of at least 2⁻¹⁰².
void arrange_numbers(const float* x, std::int64_t count, float* arranged);

}}}  // namespace heed::v0::models
