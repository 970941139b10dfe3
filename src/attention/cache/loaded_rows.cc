// Reads rows of numbers from the groups of a page.
#include <algorithm>
#include <array>

#include "attention/cache/stored_rows.h"
#include "attention/kernels/decode/stored_tile.h"
#include "heed/core/data_type.h"

namespace heed { inline namespace v0 { namespace detail {

namespace {

using kernels::kGroupKeys;

// Converts consecutive numbers of T to floats.
template <class T>
void widen(const kernels::KernelTable* table, const T* from, std::int64_t count, float* to) {
  if constexpr (sizeof(T) == 2) {
    if (table != nullptr) {
      return table->widen(data_type_of<T>(), reinterpret_cast<const std::byte*>(from), count, to);
    }
  }
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

// The number of dimensions that are read from columns at a time: as floats they fit the first-level
// cache.
constexpr std::int64_t kColumnDims = 64;

// The numbers of some dimensions for all positions of a group, [dims][kGroupKeys]; at most
// kColumnDims dimensions, from a multiple of it on.
void load_columns(const kernels::KernelTable* table, const SideLayout& side, const std::byte* group,
                  RowRange dims, float* columns) {
  kernels::with_number(side.storage, [&](auto number) {
    using T = decltype(number);
    const T* const from = reinterpret_cast<const T*>(group) + dims.begin * kGroupKeys;
    widen(table, from, (dims.end - dims.begin) * kGroupKeys, columns);
  });
}

// rows[j][d] = columns[d][j] for four positions and dimensions, which compilers keep in registers.
void transpose_square(const float* columns, float* rows, std::int64_t stride) {
  constexpr std::size_t kSquare = 4;
  std::array<float, kSquare * kSquare> square;
  for (std::size_t d = 0; d < kSquare; ++d) {
    for (std::size_t j = 0; j < kSquare; ++j) square[j * kSquare + d] = columns[d * kGroupKeys + j];
  }
  for (std::size_t j = 0; j < kSquare; ++j, rows += stride) {
    std::copy_n(square.data() + j * kSquare, kSquare, rows);
  }
}

// rows[j][d] = columns[d][j] for `dims` dimensions and the positions `lanes`: columns is
// [dims][kGroupKeys], and the first row is that of lanes.begin.
void transpose(const float* columns, std::int64_t dims, RowRange lanes, float* rows,
               std::int64_t stride) {
  const std::int64_t whole = lanes.begin % 4 == 0 && lanes.end % 4 == 0 ? dims / 4 * 4 : 0;
  for (std::int64_t j = lanes.begin; whole > 0 && j < lanes.end; j += 4) {
    for (std::int64_t d = 0; d < whole; d += 4) {
      transpose_square(columns + d * kGroupKeys + j, rows + (j - lanes.begin) * stride + d, stride);
    }
  }
  for (std::int64_t j = lanes.begin; j < lanes.end; ++j) {
    float* const row = rows + (j - lanes.begin) * stride;
    for (std::int64_t d = whole; d < dims; ++d) row[d] = columns[d * kGroupKeys + j];
  }
}

// The positions `lanes` of a group in columns, as rows.
void load_group(const kernels::KernelTable* table, const SideLayout& side, const std::byte* group,
                RowRange lanes, float* rows) {
  std::array<float, kColumnDims * kGroupKeys> columns;
  for (std::int64_t first = 0; first < side.stored_dim; first += kColumnDims) {
    const RowRange dims{first, std::min(first + kColumnDims, side.stored_dim)};
    load_columns(table, side, group, dims, columns.data());
    transpose(columns.data(), dims.end - dims.begin, lanes, rows + first, side.stored_dim);
  }
}

// A position of a quantised group: number · scale, rounded once.
void load_quantised(const SideLayout& side, const std::byte* group, const float* scales,
                    std::int64_t lane, float* row) {
  const kernels::StorageTraits& traits = kernels::traits_of(side.storage);
  const int all_bits = (1 << traits.bits) - 1;
  for (std::int64_t d = 0; d < side.stored_dim; ++d) {
    const QuantisedPlace place = side.place(lane, d);
    const int stored = std::to_integer<int>(group[place.byte]) >> place.shift & all_bits;
    const int number = stored - traits.offset;
    row[d] = static_cast<float>(number) * scales[side.scale_index(lane, d)];
  }
}

// A position of a group in rows.
void load_row(const kernels::KernelTable* table, const SideLayout& side, const std::byte* group,
              std::int64_t lane, float* row) {
  const std::byte* const from = group + lane * side.row_stride;
  kernels::with_number(side.storage, [&](auto number) {
    widen(table, reinterpret_cast<const decltype(number)*>(from), side.stored_dim, row);
  });
}

}  // namespace

void load_rows(const kernels::KernelTable* table, const SideLayout& side,
               PagePart<const std::byte> part, RowRange slots, float* rows) {
  for (std::int64_t slot = slots.begin; slot < slots.end;) {
    const std::int64_t first = slot / kGroupKeys * kGroupKeys;
    const RowRange lanes{slot - first, std::min<std::int64_t>(slots.end - first, kGroupKeys)};
    const std::byte* const group = side.group(part, slot / kGroupKeys);
    const float* const scales = side.scales(part, slot / kGroupKeys);
    if (side.is_columns && !side.is_quantised()) {
      load_group(table, side, group, lanes, rows);
      rows += (lanes.end - lanes.begin) * side.stored_dim;
    } else {
      for (std::int64_t lane = lanes.begin; lane < lanes.end; ++lane, rows += side.stored_dim) {
        if (side.is_quantised()) {
          load_quantised(side, group, scales, lane, rows);
        } else {
          load_row(table, side, group, lane, rows);
        }
      }
    }
    slot = first + lanes.end;
  }
}

}}}  // namespace heed::v0::detail
