// A reference implementation of a sequence of a cache: a vector of positions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "attention/kernels/decode/stored_tile.h"
#include "heed/attention.h"
#include "heed/attention/kv_cache.h"
#include "heed/attention/mask.h"
#include "heed/core/tensor.h"

namespace heed::testing_support {

// Returns `number` as a storage that converts single numbers stores it.
inline float stored_alone(KvStorage storage, float number) {
  kernels::with_number(storage, [&](auto kind) {
    number = static_cast<float>(static_cast<decltype(kind)>(number));
  });
  return number;
}

// Returns a row of one key head as stored; int4 is returned unchanged.
inline std::vector<float> stored(KvStorage storage, std::vector<float> row) {
  if (storage == KvStorage::kInt8) {
    float largest = 0;
    for (const float number : row) largest = std::max(largest, std::abs(number));
    const float scale = largest / 127;
    for (float& number : row)
      number = scale == 0 ? 0 : (std::nearbyint(number / scale) + 0) * scale;  // never −0
  }
  for (float& number : row) number = stored_alone(storage, number);
  return row;
}

// The positions of a sequence, and the lengths to which it can be truncated.
class ModelLength {
 public:
  explicit ModelLength(const KvBounds& bounds) : bounds_(bounds) {}

  std::int64_t length() const { return length_; }
  bool is_bounded() const { return bounds_.window != kUnbounded; }
  bool has_gap() const { return gone_end_ > bounds_.sinks; }
  bool is_gone(std::int64_t position) const {
    return position >= bounds_.sinks && position < gone_end_;
  }
  bool keeps_for(std::int64_t position) const {
    return !has_gap() || position - bounds_.window + 1 >= gone_end_;
  }
  bool can_truncate(std::int64_t n) const { return n <= bounds_.sinks || keeps_for(n); }
  // Returns every length to which the sequence can be truncated.
  std::vector<std::int64_t> ends() const {
    std::vector<std::int64_t> all;
    for (std::int64_t n = 0; n <= length_; ++n) {
      if (can_truncate(n)) all.push_back(n);
    }
    return all;
  }
  // Returns the number of positions to append until the forgotten part ends at a page border.
  std::int64_t to_border(std::int64_t page_size) const {
    const std::int64_t gone = std::max<std::int64_t>(length_ - capacity(), 0);
    return (gone / page_size + 1) * page_size - (length_ - capacity());
  }
  bool can_accept(std::int64_t nodes, const std::vector<std::int64_t>& path) const {
    const std::int64_t base = length_ - nodes;
    for (std::size_t i = 0; i < path.size(); ++i) {
      const auto to = base + static_cast<std::int64_t>(i);
      const std::int64_t from = base + path[i];
      if (from != to && (is_gone(from) || is_gone(to))) return false;
    }
    return can_truncate(base + std::ssize(path));
  }

  void append(std::int64_t n) {
    length_ += n;
    if (is_bounded()) gone_end_ = std::max(gone_end_, length_ - capacity());
  }
  void truncate(std::int64_t n) {
    length_ = n;
    if (n <= bounds_.sinks) gone_end_ = 0;
  }

 private:
  std::int64_t capacity() const { return bounds_.window + bounds_.max_append - 1 + bounds_.rewind; }

  KvBounds bounds_;
  std::int64_t length_ = 0;
  std::int64_t gone_end_ = 0;
};

class ModelSequence {
 public:
  ModelSequence(const KvConfig& config, const KvBounds& bounds)
      : config_(config), bounds_(bounds), state_(bounds) {}

  std::int64_t length() const { return state_.length(); }
  const ModelLength& state() const { return state_; }

  // key [heads, n, head_dim], value [heads, n, value_dim]
  void append(FloatView key, FloatView value) {
    for (std::int64_t i = 0; i < key.extent(1); ++i) {
      Position position;
      for (std::int64_t h = 0; h < key.extent(0); ++h) {
        add(config_.key_storage, key.select(0, h).select(0, i), position.key);
        add(config_.value_storage, value.select(0, h).select(0, i), position.value);
      }
      positions_.push_back(position);
    }
    state_.append(key.extent(1));
  }
  void truncate(std::int64_t n) {
    positions_.resize(static_cast<std::size_t>(n));
    state_.truncate(n);
  }
  void accept(std::int64_t nodes, const std::vector<std::int64_t>& path) {
    const std::int64_t base = length() - nodes;
    for (std::size_t i = 0; i < path.size(); ++i) {
      positions_[static_cast<std::size_t>(base) + i] =
          positions_[static_cast<std::size_t>(base + path[i])];
    }
    truncate(base + std::ssize(path));
  }

  // [1, num_kv_heads, length, dim]
  Tensor<float> key() const { return tensor(&Position::key, config_.head_dim); }
  Tensor<float> value() const { return tensor(&Position::value, *config_.value_dim); }

  // Returns the options of attention() that correspond to those of attend().
  AttentionOptions options(AttentionOptions options, std::int64_t num_queries) const {
    options.query_offset = length() - num_queries;
    if (state_.is_bounded()) {
      const std::int64_t sinks = bounds_.sinks;
      const std::int64_t window = bounds_.window;
      options.mask =
          options.mask & (sinks == 0 ? sliding_window(window - 1, kUnbounded, Alignment::top_left())
                                     : Mask::where([=](auto, auto, auto q, auto k) {
                                         return (k < sinks) | (k > q - window);
                                       }));
    }
    return options;
  }

 private:
  struct Position {
    std::vector<float> key;  // [num_kv_heads][dim]
    std::vector<float> value;
  };

  static void add(KvStorage storage, FloatView row, std::vector<float>& to) {
    std::vector<float> numbers;
    for (std::int64_t d = 0; d < row.extent(0); ++d) numbers.push_back(row(d));
    const auto kept = stored(storage, numbers);
    to.insert(to.end(), kept.begin(), kept.end());
  }
  Tensor<float> tensor(std::vector<float> Position::*side, std::int64_t dim) const {
    Tensor<float> result({1, config_.num_kv_heads, length(), dim});
    for (std::int64_t h = 0; h < config_.num_kv_heads; ++h) {
      for (std::int64_t k = 0; k < length(); ++k) {
        const auto& row = positions_[static_cast<std::size_t>(k)].*side;
        std::copy_n(row.begin() + h * dim, dim, &result(0, h, k, 0));
      }
    }
    return result;
  }

  KvConfig config_;
  KvBounds bounds_;
  ModelLength state_;
  std::vector<Position> positions_;
};

}  // namespace heed::testing_support
