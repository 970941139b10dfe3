// The problems of the accuracy sweep. Its bounds are of the distribution of these problems, so that
// they are drawn here and not from the table of options.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <limits>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/drawn_attention.h"
#include "support/options.h"
#include "support/tensors.h"

namespace heed::testing_support {

struct SweptOptions {
  std::uint32_t contents_seed = 0;   // of sinks and slopes
  std::vector<std::uint32_t> masks;  // a seed for a mask that is a range, or none
  bool has_sinks = false;
  float softcap = 0;
  bool has_alibi = false;
  std::uint32_t bias = 0;  // a seed; 0 for none
  float dropout = 0;

  // A row of options that adds all of them. It and its numbers live as long as the program.
  const Option* row() const;
  // E.g. "softcap 20, slopes, bias 17".
  std::string name() const;
};

namespace swept {

using Call = DrawnOptions<float>;

inline std::int64_t below(std::mt19937& random, std::int64_t end) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
}

template <class T>
T one_of(std::mt19937& random, std::initializer_list<T> choices) {
  return choices.begin()[random() % choices.size()];
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

inline std::string SweptOptions::name() const {
  std::ostringstream text;
  const char* comma = "";
  const auto add = [&](const char* what, auto number) {
    if (number != 0) text << std::exchange(comma, ", ") << what << number;
  };
  add("softcap ", softcap);
  add("bias ", bias);
  add("dropout ", dropout);
  if (has_alibi) text << std::exchange(comma, ", ") << "slopes";
  if (has_sinks) text << std::exchange(comma, ", ") << "sinks";
  return text.str();
}

inline const Option* SweptOptions::row() const {
  static std::deque<Option> rows;
  static std::deque<std::string> names;
  static std::deque<Tensor<float>> numbers;
  const auto add = [swept = *this](swept::Call& call) {
    const Sizes& sizes = call.sizes();
    AttentionOptions& options = call.options();
    const std::uint32_t seed = swept.contents_seed;
    for (const std::uint32_t mask : swept.masks) {
      std::mt19937 random(mask);
      options.mask = options.mask & swept::range_mask(sizes, random);
    }
    if (swept.bias != 0) options.bias = swept::bias(sizes, swept.bias, numbers);
    if (swept.has_sinks) {
      options.sinks = numbers.emplace_back(normal<float>({sizes.num_heads}, seed + 4)).view();
    }
    if (swept.has_alibi) {
      options.alibi_slopes =
          numbers.emplace_back(normal<float>({sizes.num_heads}, seed + 5)).view();
    }
    options.softcap = swept.softcap;
    options.dropout = {.probability = swept.dropout, .seed = 7};
  };
  return &rows.emplace_back(
      Option{.name = names.emplace_back(name()), .kind = Option::Kind::kOther, .add = add});
}

// Draws a problem, without or with options for which kernels expose their scores.
inline AttentionCase drawn_for_sweep(std::mt19937& random, bool modifies_scores) {
  AttentionCase drawn;
  drawn.sizes.batch = swept::one_of<std::int64_t>(random, {1, 2});
  drawn.sizes.num_kv_heads = swept::one_of<std::int64_t>(random, {1, 2});
  drawn.sizes.num_heads = drawn.sizes.num_kv_heads * swept::one_of<std::int64_t>(random, {1, 2, 4});
  drawn.sizes.q_len = swept::one_of<std::int64_t>(random, {1, 7, 32, 60});
  drawn.sizes.kv_len = swept::one_of<std::int64_t>(random, {5, 64, 130, 300});
  drawn.sizes.head_dim = swept::one_of<std::int64_t>(random, {8, 16, 40, 64});
  drawn.sizes.value_dim = swept::one_of<std::int64_t>(random, {8, 16, 40, 64});
  drawn.magnitude = swept::one_of(random, {0.3F, 1.0F, 3.0F, 10.0F, 30.0F});
  drawn.query_offset = drawn.sizes.kv_len - drawn.sizes.q_len;
  drawn.contents_seed = random();
  SweptOptions options;
  options.contents_seed = drawn.contents_seed;
  const std::uint32_t seed = random() % 1000;
  if (random() % 2 == 0) options.masks.push_back(seed / 8 * 13 + seed % 8);
  options.has_sinks = random() % 2 == 0;
  if (modifies_scores) {
    options.softcap = swept::one_of(random, {0.0F, 0.0F, 20.0F});
    options.has_alibi = random() % 2 == 0;
    options.bias = random() % 2 == 0 ? 1 + random() % 1000 : 0;
  }
  options.dropout = swept::one_of(random, {0.0F, 0.0F, 0.0F, 0.3F});
  drawn.options.push_back(options.row());
  return drawn;
}

}  // namespace heed::testing_support
