// x · Wᵀ, divided among threads, and the layout of 4-bit weights for it: groups of rows, such that
// one vector load reads the same columns of adjacent rows. A product then sums rows in lanes,
// converts their scales together, and needs one instruction per nibble instead of two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "heed/core/tensor.h"
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

// The most rows of x for which W is read in its stored form, once for each kMostInputRows of them.
// A product with a Q4_1 matrix of 576 × 576 then runs at 50 GFLOP/s, with 12 or 16 rows; with W
// decoded, at 60 and 69 with 17 and 24 rows (AVX2, one thread).
inline constexpr std::int64_t kFewInputRows = 12;

// out = x · Wᵀ (+ bias, unless it is empty). The rows of x [n, columns] and out [n, rows] are
// contiguous; the shapes fit. A row of the result depends only on the row of x, the kernels and
// whether n is at most kFewInputRows.
void multiply(const WeightKernels& kernels, const WeightRows& w, FloatView x,
              std::span<const float> bias, TensorView<float> out);

}}}  // namespace heed::v0::models
