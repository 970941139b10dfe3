#include "models/weight_groups.h"

#include <algorithm>
#include <cstring>

#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "heed/core/shape.h"
#include "models/weight_format.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::int64_t kNibbleBytes = kWeightBlock / 2;
constexpr std::int64_t kHeadPiece = 2;
constexpr std::int64_t kNibblePiece = 4;

// Calls copy(offset, size) for each piece of a block.
template <class Copy>
void for_pieces(std::int64_t block_bytes, const Copy& copy) {
  const std::int64_t nibbles = block_bytes - kNibbleBytes;
  for (std::int64_t at = 0; at < nibbles; at += kHeadPiece) copy(at, kHeadPiece);
  for (std::int64_t at = nibbles; at < block_bytes; at += kNibblePiece) copy(at, kNibblePiece);
}

// The offset of the piece of row i in a group, from the beginning of the block of all its rows.
std::int64_t place_of_piece(std::int64_t i, std::int64_t offset, std::int64_t size) {
  return kGroupRows * offset + i * size;
}

}  // namespace

bool wants_groups(WeightType type) {
  return type == WeightType::kQ4_0 || type == WeightType::kQ4_1;
}

std::vector<std::byte> group_rows(const WeightRows& w) {
  const std::int64_t num_groups = (w.num_rows + kGroupRows - 1) / kGroupRows;
  const std::int64_t group_bytes = checked_multiply(kGroupRows, w.row_bytes);
  std::vector<std::byte> groups(
      static_cast<std::size_t>(checked_multiply(num_groups, group_bytes)));
  const std::int64_t block_bytes = format_of(w.type).block_bytes;
  parallel_for(0, w.num_rows, kGroupRows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::byte* from = w.row(row);
      std::byte* to = groups.data() + first * w.row_bytes;
      for (std::int64_t done = 0; done < w.row_bytes; done += block_bytes) {
        for_pieces(block_bytes, [&](std::int64_t offset, std::int64_t size) {
          std::memcpy(to + place_of_piece(row - first, offset, size), from + offset,
                      static_cast<std::size_t>(size));
        });
        from += block_bytes;
        to += kGroupRows * block_bytes;
      }
    }
  });
  return groups;
}

const std::byte* stored_columns(const WeightRows& w, std::int64_t row, std::int64_t first,
                                std::int64_t count, std::byte* memory) {
  const WeightFormat& format = format_of(w.type);
  const std::int64_t begin = first / format.block_elements * format.block_bytes;
  if (!w.is_grouped) return w.row(row) + begin;
  const std::int64_t index = w.first_row + row;
  const std::int64_t i = index % kGroupRows;
  const std::byte* from = w.bytes + (index - i) * w.row_bytes + kGroupRows * begin;
  std::byte* to = memory;
  for (std::int64_t done = 0; done < count; done += format.block_elements) {
    for_pieces(format.block_bytes, [&](std::int64_t offset, std::int64_t size) {
      std::memcpy(to + offset, from + place_of_piece(i, offset, size),
                  static_cast<std::size_t>(size));
    });
    from += kGroupRows * format.block_bytes;
    to += format.block_bytes;
  }
  return memory;
}

void arrange_numbers(const float* x, std::int64_t count, float* arranged) {
  // Byte b of a piece holds columns b and b + 16, counted from the first column of the piece.
  constexpr std::int64_t kHalf = kWeightBlock / 2;
  for (std::int64_t block = 0; block < count; block += kWeightBlock) {
    for (std::int64_t piece = 0; piece < kHalf; piece += kNibblePiece) {
      float factor = 1;
      for (std::int64_t b = 0; b < kNibblePiece; ++b) {
        const float* const numbers = x + block + piece + b;
        *arranged++ = numbers[0] * factor;
        factor *= 0x1p-4F;
        const bool is_last = b + 1 == kNibblePiece;
        *arranged++ = is_last ? numbers[kHalf] : numbers[kHalf] * factor;
        factor *= 0x1p-4F;
      }
    }
  }
}

}}}  // namespace heed::v0::models
