// The options of the problems of the accuracy sweep. Its bounds are of the distribution of these
// problems, so that they are drawn here and not from the table of options.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "support/options.h"
#include "support/tensors.h"

namespace heed::testing_support {

struct SweptOptions {
  std::vector<std::uint32_t> masks;  // a seed for a mask that is a range, or none
  bool has_sinks = false;
  float softcap = 0;
  bool has_alibi = false;
  std::uint32_t bias = 0;  // a seed; 0 for none
  float dropout = 0;

  // A row of options that adds all of them. It and its numbers live as long as the program.
  const Option* row() const;
};

namespace swept {

using Call = DrawnOptions<float>;

inline std::int64_t below(std::mt19937& random, std::int64_t end) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
}

// A mask that is a range of keys for each row, for queries that end at the last key.
inline Mask range_mask(const Sizes& sizes, std::mt19937& random) {
  switch (below(random, 8)) {
    case 0:
      return causal_top_left();
    case 1:
      return causal();
    case 2:
      return causal(below(random, 400) - 100);
    case 3: {
      const std::int64_t offset = below(random, 300) - 50;
      const std::int64_t right = below(random, 50);
      return sliding_window(below(random, 200), right, Alignment::offset(offset));
    }
    case 4:
      return sliding_window(below(random, 2) == 0 ? kUnbounded : below(random, 9), kUnbounded,
                            Alignment::top_left());
    case 5:
      return prefix(below(random, 300), Alignment::top_left());
    case 6: {
      std::vector<std::int64_t> lengths(static_cast<std::size_t>(sizes.batch));
      for (std::int64_t& length : lengths) length = below(random, sizes.kv_len + 1);
      return key_lengths(lengths);
    }
    default: {
      if (sizes.q_len > sizes.kv_len) {
        std::vector<RowRange> ranges(static_cast<std::size_t>(sizes.q_len));
        for (RowRange& range : ranges) {
          range.begin = below(random, 300) - 50;
          range.end = below(random, 400) - 50;
        }
        return Mask::rows(ranges);
      }
      std::vector<std::int64_t> boundaries{0, sizes.kv_len};
      for (int i = 0; i < 4; ++i) boundaries.push_back(below(random, sizes.kv_len + 1));
      std::sort(boundaries.begin(), boundaries.end());
      return documents(boundaries);
    }
  }
}

// A bias of some shape that broadcasts to the scores, with gaps in memory or with its last two
// dimensions swapped.
inline FloatView bias(const Sizes& sizes, std::uint32_t seed, std::deque<Tensor<float>>& kept) {
  std::mt19937 random(seed);
  const std::array<std::int64_t, 4> full{sizes.batch, sizes.num_heads, sizes.q_len, sizes.kv_len};
  const auto rank = static_cast<std::size_t>(below(random, 5));
  std::array<std::int64_t, 4> extents{};
  for (std::size_t i = 0; i < rank; ++i) {
    extents[i] = below(random, 3) == 0 ? 1 : full[4 - rank + i];
  }
  const Shape shape(std::span<const std::int64_t>(extents.data(), rank));
  const std::int64_t gap = 1 + below(random, 2);
  kept.emplace_back(Shape{shape.num_elements() * gap});
  for (float& element : kept.back().elements()) {
    element = below(random, 9) == 0 ? -std::numeric_limits<float>::infinity()
                                    : static_cast<float>(below(random, 1000)) / 300 - 1;
  }
  Strides strides = contiguous_strides(shape);
  if (rank >= 2 && below(random, 2) == 0) {
    strides[rank - 2] = 1;
    strides[rank - 1] = extents[rank - 2];
  }
  for (std::int64_t& stride : strides) stride *= gap;
  return {kept.back().data(), shape, strides};
}

}  // namespace swept

inline const Option* SweptOptions::row() const {
  static std::deque<Option> rows;
  static std::deque<Tensor<float>> numbers;
  const auto add = [swept = *this](swept::Call& call) {
    const Sizes& sizes = call.sizes();
    AttentionOptions& options = call.options();
    for (const std::uint32_t seed : swept.masks) {
      std::mt19937 random(seed);
      options.mask = options.mask & swept::range_mask(sizes, random);
    }
    if (swept.bias != 0) options.bias = swept::bias(sizes, swept.bias, numbers);
    if (swept.has_sinks) {
      options.sinks = numbers.emplace_back(normal<float>({sizes.num_heads}, 4)).view();
    }
    if (swept.has_alibi) {
      options.alibi_slopes = numbers.emplace_back(normal<float>({sizes.num_heads}, 5)).view();
    }
    options.softcap = swept.softcap;
    options.dropout = {.probability = swept.dropout, .seed = 7};
  };
  return &rows.emplace_back(Option{.name = "swept", .kind = Option::Kind::kOther, .add = add});
}

}  // namespace heed::testing_support
