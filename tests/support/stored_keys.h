// Keys and values packed as in a cache, for tests of their readers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "attention/kernels/decode/stored_tile.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed::testing_support {

// The numbers of one side, [positions][dim], in one storage. Memory between the groups must not be
// read, so that a sanitizer detects reads beyond a group.
class StoredSide {
 public:
  StoredSide(const Tensor<float>& numbers, KvStorage storage, bool is_columns)
      : numbers_(numbers),
        stored_(numbers),
        storage_(storage),
        is_columns_(is_columns),
        dim_(numbers.extent(1)),
        scale_dims_((dim_ + kernels::kScaleDims - 1) / kernels::kScaleDims) {
    for (std::int64_t first = 0; first < numbers.extent(0); first += kernels::kGroupKeys) {
      bytes_.emplace_back(static_cast<std::size_t>(kernels::kGroupKeys * row_bytes()));
      scales_.emplace_back(static_cast<std::size_t>(kernels::kGroupKeys * scale_dims_));
      // Unused positions of a partial group hold NaN.
      std::fill(bytes_.back().begin(), bytes_.back().end(), std::byte{0xff});
      const std::int64_t last = std::min(first + kernels::kGroupKeys, numbers.extent(0));
      for (std::int64_t key = first; key < last; ++key) store(key);
    }
  }

  // Makes the groups contiguous.
  void join() { join({this}, bytes_.size()); }

  // Makes the groups of both sides contiguous, a tile's keys before its values, as in a cache.
  static void join(StoredSide& key, StoredSide& value) {
    join({&key, &value}, kernels::kTileKeys / kernels::kGroupKeys);
  }

  // Returns the positions of a tile in the form that the decode kernel reads.
  kernels::StoredNumbers tile(std::int32_t first_key, std::int32_t num_keys) const {
    kernels::StoredNumbers numbers;
    numbers.storage = storage_;
    numbers.is_columns = is_columns_;
    numbers.row_stride = row_bytes();
    for (std::int32_t key = 0; key < num_keys; key += kernels::kGroupKeys) {
      const auto i = static_cast<std::size_t>(key / kernels::kGroupKeys);
      const auto group = static_cast<std::size_t>((first_key + key) / kernels::kGroupKeys);
      numbers.groups[i] =
          joined_ == nullptr ? bytes_[group].data() : joined_->data() + offsets_[group];
      numbers.scales[i] = scales_[group].data();
    }
    return numbers;
  }

  // Returns the stored numbers as floats.
  const Tensor<float>& stored() const { return stored_; }

 private:
  // Makes the groups of several sides contiguous, `groups_in_turn` of each in turn.
  static void join(const std::vector<StoredSide*>& sides, std::size_t groups_in_turn) {
    const auto joined = std::make_shared<std::vector<std::byte>>();
    const std::size_t count = sides.front()->bytes_.size();
    for (std::size_t first = 0; first < count; first += groups_in_turn) {
      for (StoredSide* side : sides) {
        for (std::size_t g = first; g < std::min(first + groups_in_turn, count); ++g) {
          side->offsets_.push_back(joined->size());
          joined->insert(joined->end(), side->bytes_[g].begin(), side->bytes_[g].end());
        }
      }
    }
    for (StoredSide* side : sides) side->joined_ = joined;
  }

  std::int64_t row_bytes() const {
    if (storage_ == KvStorage::kInt8) {
      return is_columns_ ? (dim_ + 3) / 4 * 4 : (dim_ + 15) / 16 * 16;
    }
    if (storage_ == KvStorage::kInt4) return scale_dims_ * (kernels::kScaleDims / 2);
    std::int64_t bytes = 0;
    kernels::with_number(
        storage_, [&](auto number) { bytes = static_cast<std::int64_t>(sizeof(number)) * dim_; });
    return bytes;
  }

  template <class T>
  void put(std::int64_t key, std::int64_t d, T number) {
    const std::int64_t j = key % kernels::kGroupKeys;
    const std::int64_t index = is_columns_ ? d * kernels::kGroupKeys + j : j * dim_ + d;
    std::memcpy(bytes_.back().data() + index * static_cast<std::int64_t>(sizeof(T)), &number,
                sizeof(T));
  }

  void put_byte(std::int64_t key, std::int64_t d, int number) {
    const std::int64_t j = key % kernels::kGroupKeys;
    const std::int64_t index =
        is_columns_ ? d / 4 * 64 + j * 4 + d % 4 : (j / 4 * row_bytes() + d) * 4 + j % 4;
    bytes_.back()[static_cast<std::size_t>(index)] = static_cast<std::byte>(number + 128);
  }

  // Sets the nibble of one dimension to `number` + 8 in its byte.
  void put_nibble(std::int64_t key, std::int64_t d, int number) {
    const std::int64_t j = key % kernels::kGroupKeys;
    const std::int64_t index = is_columns_
                                   ? d / 8 * 64 + j * 4 + d % 4
                                   : ((j / 4 * scale_dims_ + d / 32) * 16 + d % 16) * 4 + j % 4;
    const bool is_high = is_columns_ ? d % 8 >= 4 : d % 32 >= 16;
    std::byte& byte = bytes_.back()[static_cast<std::size_t>(index)];
    const auto nibble = static_cast<std::byte>(number + 8);
    byte = is_high ? (byte & std::byte{0x0f}) | nibble << 4 : (byte & std::byte{0xf0}) | nibble;
  }

  // Returns the scale with which the largest of these dimensions becomes `largest`.
  float scale_of(std::int64_t key, std::int64_t first, std::int64_t last, float largest) const {
    float magnitude = 0;
    for (std::int64_t d = first; d < last; ++d) {
      magnitude = std::max(magnitude, std::abs(numbers_(key, d)));
    }
    return magnitude / largest;
  }
  int rounded(std::int64_t key, std::int64_t d, float scale) const {
    return scale == 0 ? 0 : static_cast<int>(std::lround(numbers_(key, d) / scale));
  }

  void store(std::int64_t key) {
    const auto j = static_cast<std::size_t>(key % kernels::kGroupKeys);
    std::vector<float>& scales = scales_.back();
    if (storage_ == KvStorage::kInt4) return store_int4(key, scales);
    const float scale = storage_ == KvStorage::kInt8 ? scale_of(key, 0, dim_, 127) : 0;
    scales[j] = scale;
    for (std::int64_t d = 0; d < dim_; ++d) {
      float& stored = stored_(key, d);
      kernels::with_number(storage_, [&](auto kind) {
        const auto number = static_cast<decltype(kind)>(stored);
        put(key, d, number);
        stored = static_cast<float>(number);
      });
      if (storage_ == KvStorage::kInt8) {
        const int number = rounded(key, d, scale);
        put_byte(key, d, number);
        stored = static_cast<float>(number) * scale;
      }
    }
  }

  void store_int4(std::int64_t key, std::vector<float>& scales) {
    const std::int64_t j = key % kernels::kGroupKeys;
    for (std::int64_t block = 0; block < scale_dims_; ++block) {
      const std::int64_t first = block * kernels::kScaleDims;
      const std::int64_t last = first + kernels::kScaleDims;
      const float scale = scale_of(key, first, std::min(last, dim_), 7);
      scales[static_cast<std::size_t>(block * kernels::kGroupKeys + j)] = scale;
      for (std::int64_t d = first; d < last; ++d) {
        const int number = d < dim_ ? rounded(key, d, scale) : 0;
        put_nibble(key, d, number);
        if (d < dim_) stored_(key, d) = static_cast<float>(number) * scale;
      }
    }
  }

  const Tensor<float>& numbers_;
  Tensor<float> stored_;
  KvStorage storage_;
  bool is_columns_;
  std::int64_t dim_;
  std::int64_t scale_dims_;
  std::vector<std::vector<std::byte>> bytes_;
  // The contiguous groups and the offset of each; or nothing.
  std::shared_ptr<const std::vector<std::byte>> joined_;
  std::vector<std::size_t> offsets_;
  std::vector<std::vector<float>> scales_;
};

}  // namespace heed::testing_support
