// Stored weights in plain loops: converted to floats, and multiplied.
#include <cstring>
#include <vector>

#include "heed/core/data_type.h"
#include "models/kernels/weight_kernels.h"
#include "models/weight_product.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

template <class T>
T read_number(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <class Half>
float half_number(const std::byte* bytes) {
  return Half::from_bits(read_number<std::uint16_t>(bytes));
}

template <class Half>
void decode_halves(const std::byte* bytes, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = half_number<Half>(bytes + 2 * i);
}

void decode_q8_0_block(const std::byte* block, float* out) {
  const float scale = half_number<Float16>(block);
  for (std::int64_t i = 0; i < kWeightBlock; ++i) {
    out[i] = scale * static_cast<float>(read_number<std::int8_t>(block + 2 + i));
  }
}

// out = scale · (q + shift) + minimum for the nibbles q; the product is exact.
void decode_nibbles(const std::byte* bytes, float scale, int shift, float minimum, float* out) {
  constexpr std::int64_t kHalf = kWeightBlock / 2;
  for (std::int64_t i = 0; i < kHalf; ++i) {
    const int pair = std::to_integer<int>(bytes[i]);
    out[i] = scale * static_cast<float>((pair & 15) + shift) + minimum;
    out[i + kHalf] = scale * static_cast<float>((pair >> 4) + shift) + minimum;
  }
}

void decode_q4_0_block(const std::byte* block, float* out) {
  // Adding −0 changes nothing; adding 0 would change −0.
  decode_nibbles(block + 2, half_number<Float16>(block), -8, -0.0F, out);
}

void decode_q4_1_block(const std::byte* block, float* out) {
  decode_nibbles(block + 4, half_number<Float16>(block), 0, half_number<Float16>(block + 2), out);
}

template <class Decode>
void decode_blocks(WeightType type, const Decode& decode_block, const std::byte* bytes,
                   std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kWeightBlock) {
    decode_block(bytes, out + i);
    bytes += format_of(type).block_bytes;
  }
}

}  // namespace

void decode(WeightType type, const std::byte* bytes, std::int64_t count, float* out) {
  switch (type) {
    case WeightType::kFloat32:
      if (count > 0) std::memcpy(out, bytes, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case WeightType::kFloat16:
      return decode_halves<Float16>(bytes, count, out);
    case WeightType::kBFloat16:
      return decode_halves<BFloat16>(bytes, count, out);
    case WeightType::kQ8_0:
      return decode_blocks(type, decode_q8_0_block, bytes, count, out);
    case WeightType::kQ4_0:
      return decode_blocks(type, decode_q4_0_block, bytes, count, out);
    case WeightType::kQ4_1:
      return decode_blocks(type, decode_q4_1_block, bytes, count, out);
  }
}

namespace {

void sum_blocks_plainly(const float* x, std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count; i += kWeightBlock) {
    float sum = 0;
    for (std::int64_t j = 0; j < kWeightBlock; ++j) sum += x[i + j];
    *sums++ = sum;
  }
}

void multiply_plainly(const WeightRows& w, const InputRows& x, float* out,
                      std::int64_t out_stride) {
  std::vector<float> row(static_cast<std::size_t>(w.columns));
  std::vector<std::byte> stored(static_cast<std::size_t>(w.row_bytes));
  for (std::int64_t r = 0; r < w.num_rows; ++r) {
    decode(w.type, stored_columns(w, r, 0, w.columns, stored.data()), w.columns, row.data());
    for (std::int64_t i = 0; i < x.num_rows; ++i) {
      float sum = 0;
      for (std::int64_t c = 0; c < w.columns; ++c) {
        sum += x.data[i * x.stride + c] * row[static_cast<std::size_t>(c)];
      }
      out[i * out_stride + r] = sum;
    }
  }
}

}  // namespace

const WeightKernels& plain_weight_kernels() {
  static constexpr WeightKernels kKernels{.name = "reference",
                                          .decode = decode,
                                          .sum_blocks = sum_blocks_plainly,
                                          .multiply = multiply_plainly,
                                          .panel_rows = 16,
                                          .multiply_panel = multiply_plainly};
  return kKernels;
}

}}}  // namespace heed::v0::models
