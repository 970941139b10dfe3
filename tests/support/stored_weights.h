// Weights of every type as files store them, and numbers to multiply them with. The same on every
// machine: nothing depends on the C library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "heed/core/data_type.h"
#include "heed/models/checkpoint.h"
#include "models/kernels/weight_kernels.h"
#include "models/weight_product.h"

namespace heed::testing_support {

// The types that multiply as they are stored.
inline constexpr models::WeightType kWeightTypes[] = {
    models::WeightType::kFloat32, models::WeightType::kFloat16, models::WeightType::kBFloat16,
    models::WeightType::kQ8_0,    models::WeightType::kQ4_0,    models::WeightType::kQ4_1};

// Numbers of columns that vectors of 4, 8 and 16 floats divide differently.
inline std::vector<std::int64_t> awkward_columns(models::WeightType type) {
  if (models::format_of(type).block_elements > 1) return {32, 64, 96, 160, 544};
  return {1, 3, 4, 7, 8, 15, 16, 17, 24, 31, 32, 33, 40, 47, 48, 49, 63, 64, 65, 97, 320, 577};
}

// A number of variance 1 between −2√3 and 2√3.
inline float bell_number(std::mt19937& random) {
  double sum = -2;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>(random()) * 0x1p-32;
  return static_cast<float>(sum * 1.7320508075688772);
}

inline Tensor<float> bell_numbers(const Shape& shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  Tensor<float> numbers(shape);
  for (float& number : numbers.elements()) number = bell_number(random);
  return numbers;
}

// Calls use(rows) with the rows in the layout of products.
template <class Use>
void with_groups(const models::WeightRows& w, const Use& use) {
  if (!models::wants_groups(w.type)) return use(w);
  const std::vector<std::byte> groups = models::group_rows(w);
  models::WeightRows grouped = w;
  grouped.bytes = groups.data();
  grouped.is_grouped = true;
  use(grouped);
}

inline Tensor<float> product(const models::WeightKernels& kernels, const models::WeightRows& w,
                             FloatView x) {
  Tensor<float> out({x.extent(0), w.num_rows});
  with_groups(w,
              [&](const models::WeightRows& rows) { models::multiply(kernels, rows, x, {}, out); });
  return out;
}

// Weights of a type as unaligned bytes, and the floats that they represent.
class StoredWeights {
 public:
  StoredWeights(models::WeightType type, std::int64_t rows, std::int64_t columns)
      : rows_{.type = type,
              .num_rows = rows,
              .columns = columns,
              .row_bytes = models::row_bytes(type, columns)},
        memory_(static_cast<std::size_t>(rows * rows_.row_bytes + 1)) {
    rows_.bytes = memory_.data() + 1;
    std::byte* at = memory_.data() + 1;
    for (std::int64_t i = 0; i < rows * columns / models::format_of(type).block_elements; ++i) {
      write_block(type, at);
      at += models::format_of(type).block_bytes;
    }
  }

  const models::WeightRows& rows() const { return rows_; }
  models::StoredTensor tensor() const {
    return {
        "w", rows_.type, {rows_.num_rows, rows_.columns}, {memory_.data() + 1, memory_.size() - 1}};
  }
  Tensor<float> floats() const { return models::to_float(tensor()); }

 private:
  template <class T>
  static std::byte* put(std::byte* at, T value) {
    std::memcpy(at, &value, sizeof value);
    return at + sizeof value;
  }

  void write_block(models::WeightType type, std::byte* at) {
    switch (type) {
      case models::WeightType::kFloat32:
        put(at, bell_number(random_));
        return;
      case models::WeightType::kFloat16:
        put(at, Float16(bell_number(random_)).bits());
        return;
      case models::WeightType::kBFloat16:
        put(at, BFloat16(bell_number(random_)).bits());
        return;
      default:
        break;
    }
    // Blocks as quantisation produces them: a minimum below zero, if the type has one.
    const float scale = 0.1F + std::abs(bell_number(random_)) * 0.1F;
    const bool is_negative = type == models::WeightType::kQ4_0;
    std::byte* next = put(at, Float16(is_negative ? -scale : scale).bits());
    if (type == models::WeightType::kQ4_1) next = put(next, Float16(-7.5F * scale).bits());
    std::generate(next, at + models::format_of(type).block_bytes,
                  [&] { return static_cast<std::byte>(random_()); });
  }

  std::mt19937 random_{1};
  models::WeightRows rows_;
  std::vector<std::byte> memory_;
};

}  // namespace heed::testing_support
