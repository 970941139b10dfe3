#include "models/weight_product.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "heed/core/shape.h"
#include "models/kernels/weight_kernels.h"

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

namespace {

// Bytes of W, times rows of x, per chunk of a thread: some 7 µs.
constexpr std::int64_t kChunkBytes = std::int64_t{64} << 10;

// Bytes of W that stay in the nearest cache while further rows of x are multiplied.
constexpr std::int64_t kTileBytes = std::int64_t{8} << 10;

// Rows of x that are multiplied with one panel of W after the other: 256 columns of them take 512
// KB.
constexpr std::int64_t kNearRows = 512;

// Multiplications of numbers with decoded weights per chunk of a thread: some 20 µs.
constexpr std::int64_t kChunkProducts = std::int64_t{1} << 20;

// The number of rows, a multiple of `step`, that takes about `wanted` units at `row` units per row.
std::int64_t rows_of(std::int64_t wanted, std::int64_t row, std::int64_t step) {
  return std::max<std::int64_t>(wanted / std::max<std::int64_t>(row, 1) / step, 1) * step;
}

// The bytes of a row of W as products read it.
std::int64_t read_bytes(const WeightRows& w) {
  return format_of(w.type).multiplies_stored ? w.row_bytes
                                             : row_bytes(WeightType::kFloat32, w.columns);
}

// Rows of W that products can read: the stored ones, or floats made from some of them.
class ReadableRows {
 public:
  // `most_rows` of them are read at a time.
  ReadableRows(const WeightKernels& kernels, const WeightRows& w, std::int64_t most_rows)
      : kernels_(kernels), w_(w) {
    if (format_of(w.type).multiplies_stored) return;
    const std::int64_t rows = std::min(most_rows, w.num_rows);
    floats_.resize(static_cast<std::size_t>(checked_multiply(rows, w.columns)));
  }

  // Valid until the next call.
  WeightRows slice(std::int64_t first, std::int64_t last) {
    const WeightRows stored = w_.slice(first, last);
    if (format_of(w_.type).multiplies_stored) return stored;
    for (std::int64_t i = 0; i < stored.num_rows; ++i) {
      kernels_.decode(w_.type, stored.row(i), w_.columns, floats_.data() + i * w_.columns);
    }
    return {.bytes = std::as_bytes(std::span(floats_)).data(),
            .num_rows = stored.num_rows,
            .columns = w_.columns,
            .row_bytes = read_bytes(w_)};
  }

 private:
  const WeightKernels& kernels_;
  const WeightRows& w_;
  std::vector<float> floats_;
};

// Rows of W per chunk: an even number of equal chunks, so that two threads have the same work, each
// of whole groups.
std::int64_t chunk_rows(const WeightRows& w, std::int64_t num_inputs) {
  const std::int64_t row = std::max<std::int64_t>(w.row_bytes * num_inputs, 1);
  const std::int64_t chunks = w.num_rows / std::max<std::int64_t>(kChunkBytes / row, 1);
  const std::int64_t even = chunks <= 1 ? 1 : (chunks + 1) / 2 * 2;
  const std::int64_t rows = (w.num_rows + even - 1) / even;
  return w.is_grouped ? (rows + kGroupRows - 1) / kGroupRows * kGroupRows : rows;
}

// Adds the bias to columns first ≤ r < last.
void add_bias(std::span<const float> bias, std::int64_t first, std::int64_t last,
              TensorView<float> out) {
  if (bias.empty()) return;
  for (std::int64_t i = 0; i < out.extent(0); ++i) {
    float* const row = out.data() + i * out.stride(0);
    for (std::int64_t r = first; r < last; ++r) row[r] += bias[static_cast<std::size_t>(r)];
  }
}

// Writes the product of matrices without columns: the bias or 0.
void fill_rows(std::span<const float> bias, TensorView<float> out) {
  for (std::int64_t i = 0; i < out.extent(0); ++i) {
    float* const row = out.data() + i * out.stride(0);
    if (bias.empty()) {
      std::fill_n(row, out.extent(1), 0.0F);
    } else {
      std::copy(bias.begin(), bias.end(), row);
    }
  }
}

// The input of products with groups of weights, made from x.
struct ArrangedNumbers {
  std::vector<float> numbers;  // [n, columns]
  std::vector<float> sums;     // [n, columns / kWeightBlock]

  ArrangedNumbers(const WeightKernels& kernels, FloatView x)
      : numbers(static_cast<std::size_t>(x.num_elements())),
        sums(numbers.size() / static_cast<std::size_t>(kWeightBlock)) {
    const std::int64_t columns = x.extent(1);
    for (std::int64_t i = 0; i < x.extent(0); ++i) {
      const float* const row = x.data() + i * x.stride(0);
      arrange_numbers(row, columns, numbers.data() + i * columns);
      kernels.sum_blocks(row, columns, sums.data() + i * (columns / kWeightBlock));
    }
  }
};

void multiply_few(const WeightKernels& kernels, const WeightRows& w, FloatView x,
                  std::span<const float> bias, TensorView<float> out) {
  InputRows inputs{.data = x.data(), .num_rows = x.extent(0), .stride = x.stride(0)};
  std::optional<ArrangedNumbers> arranged;
  if (w.is_grouped) {
    arranged.emplace(kernels, x);
    inputs.arranged = arranged->numbers.data();
    inputs.block_sums = arranged->sums.data();
    inputs.columns = w.columns;
  }
  const std::int64_t tile = rows_of(kTileBytes, read_bytes(w), w.is_grouped ? kGroupRows : 1);
  const auto multiply_tile = [&](ReadableRows& readable, std::int64_t first, std::int64_t last) {
    const WeightRows rows = readable.slice(first, last);
    for (std::int64_t i = 0; i < inputs.num_rows; i += kMostInputRows) {
      const std::int64_t end = std::min(i + kMostInputRows, inputs.num_rows);
      kernels.multiply(rows, inputs.slice(i, end), out.data() + i * out.stride(0) + first,
                       out.stride(0));
    }
    add_bias(bias, first, last, out);
  };
  parallel_for(0, w.num_rows, chunk_rows(w, inputs.num_rows),
               [&](std::int64_t first, std::int64_t last) {
                 ReadableRows readable(kernels, w, tile);
                 for (std::int64_t row = first; row < last; row += tile) {
                   multiply_tile(readable, row, std::min(row + tile, last));
                 }
               });
}

// Multiplies rows of x that stay in a cache while one panel of W after the other reads them.
void multiply_near(const WeightKernels& kernels, const WeightRows& w, FloatView x,
                   std::span<const float> bias, TensorView<float> out) {
  const InputRows inputs{.data = x.data(), .num_rows = x.extent(0), .stride = x.stride(0)};
  const auto multiply_panel = [&](ReadableRows& readable, std::int64_t first, std::int64_t last) {
    kernels.multiply_panel(readable.slice(first, last), inputs, out.data() + first, out.stride(0));
    add_bias(bias, first, last, out);
  };
  const std::int64_t products = checked_multiply(inputs.num_rows, w.columns);
  const std::int64_t rows = rows_of(kChunkProducts, products, kernels.panel_rows);
  parallel_for(0, w.num_rows, rows, [&](std::int64_t first, std::int64_t last) {
    ReadableRows readable(kernels, w, kernels.panel_rows);
    for (std::int64_t row = first; row < last; row += kernels.panel_rows) {
      multiply_panel(readable, row, std::min(row + kernels.panel_rows, last));
    }
  });
}

void multiply_many(const WeightKernels& kernels, const WeightRows& w, FloatView x,
                   std::span<const float> bias, TensorView<float> out) {
  for (std::int64_t i = 0; i < x.extent(0); i += kNearRows) {
    const std::int64_t end = std::min(i + kNearRows, x.extent(0));
    multiply_near(kernels, w, x.slice(0, i, end), bias, out.slice(0, i, end));
  }
}

}  // namespace

void multiply(const WeightKernels& kernels, const WeightRows& w, FloatView x,
              std::span<const float> bias, TensorView<float> out) {
  if (out.empty()) return;
  if (w.columns == 0) return fill_rows(bias, out);
  if (x.extent(0) <= kFewInputRows) {
    multiply_few(kernels, w, x, bias, out);
  } else {
    multiply_many(kernels, w, x, bias, out);
  }
}

}}}  // namespace heed::v0::models
