#include "attention/cache/stored_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "attention/kernels/decode/stored_tile.h"

namespace heed { inline namespace v0 { namespace detail {

namespace {

using kernels::kGroupKeys;
using kernels::kQuad;
using kernels::kScaleDims;

// The places of the numbers of one position in a group, in numbers of T.
struct Steps {
  std::int64_t first;
  std::int64_t next;
};

Steps steps(const SideLayout& side, std::int64_t lane) {
  return side.is_columns ? Steps{lane, kGroupKeys} : Steps{lane * side.stored_dim, 1};
}

// The numbers that are quantised at a time, which share a scale in int4.
using Quantised = std::array<int, kScaleDims>;

// numbers[i] / scale, rounded to nearest even and clamped to −most … most.
Quantised quantised(const float* numbers, std::int64_t count, float scale, float most) {
  // Adding this to a small number rounds away its fractional bits.
  constexpr float kNoFraction = 0x1.8p23F;
  Quantised result{};
  if (scale == 0) return result;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const float number = std::min(std::max(numbers[i] / scale, -most), most);
    result[i] = static_cast<int>((number + kNoFraction) - kNoFraction);
  }
  return result;
}

template <class T>
void store_plain(const SideLayout& side, std::byte* group, std::int64_t lane, const float* row) {
  auto* to = reinterpret_cast<T*>(group);
  const auto [first, next] = steps(side, lane);
  for (std::int64_t d = 0; d < side.stored_dim; ++d) to[first + d * next] = static_cast<T>(row[d]);
}

void store_int8(const SideLayout& side, std::byte* group, float* scales, std::int64_t lane,
                const float* row) {
  const kernels::StorageTraits& traits = kernels::traits_of(side.storage);
  const auto most = static_cast<float>(traits.most);
  const float scale = largest_magnitude(row, side.stored_dim) / most;
  scales[side.scale_index(lane, 0)] = scale;
  for (std::int64_t begin = 0; begin < side.stored_dim; begin += kScaleDims) {
    const std::int64_t count = std::min<std::int64_t>(side.stored_dim - begin, kScaleDims);
    const Quantised numbers = quantised(row + begin, count, scale, most);
    for (std::int64_t i = 0; i < count; ++i) {
      const int number = numbers[static_cast<std::size_t>(i)];
      group[side.place(lane, begin + i).byte] = static_cast<std::byte>(number + traits.offset);
    }
  }
}

// Both halves of a byte belong to one position.
void store_int4(const SideLayout& side, std::byte* group, float* scales, std::int64_t lane,
                const float* row) {
  const kernels::StorageTraits& traits = kernels::traits_of(side.storage);
  const auto most = static_cast<float>(traits.most);
  const std::int64_t half = side.is_columns ? kQuad : kScaleDims / 2;
  for (std::int64_t begin = 0; begin < side.stored_dim; begin += kScaleDims) {
    const float scale = largest_magnitude(row + begin, kScaleDims) / most;
    scales[side.scale_index(lane, begin)] = scale;
    const Quantised numbers = quantised(row + begin, kScaleDims, scale, most);
    for (std::int64_t d = 0; d < kScaleDims; ++d) {
      const QuantisedPlace place = side.place(lane, begin + d);
      if (place.shift != 0) continue;
      const int low = numbers[static_cast<std::size_t>(d)] + traits.offset;
      const int high = numbers[static_cast<std::size_t>(d + half)] + traits.offset;
      group[place.byte] = static_cast<std::byte>(low | high << 4);
    }
  }
}

// Both halves of a byte of int4 belong to one position.
void copy_quantised(const SideLayout& side, const std::byte* from_group, std::int64_t from,
                    std::byte* to_group, std::int64_t to) {
  for (std::int64_t d = 0; d < side.stored_dim; ++d) {
    const QuantisedPlace place = side.place(from, d);
    if (place.shift == 0) to_group[side.place(to, d).byte] = from_group[place.byte];
  }
}

template <class T>
void copy_plain(const SideLayout& side, const std::byte* from_group, std::int64_t from,
                std::byte* to_group, std::int64_t to) {
  const auto [source, next] = steps(side, from);
  const std::int64_t target = steps(side, to).first;
  constexpr std::int64_t kBytes = sizeof(T);
  for (std::int64_t d = 0; d < side.stored_dim; ++d) {
    std::memcpy(to_group + (target + d * next) * kBytes, from_group + (source + d * next) * kBytes,
                sizeof(T));
  }
}

}  // namespace

float largest_magnitude(const float* numbers, std::int64_t count) {
  // The bits of positive numbers have the order of the numbers, and comparisons of integers are
  // vectorised.
  std::int32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(numbers[i]) & 0x7fffffff);
  }
  return std::bit_cast<float>(largest);
}

void store_row(const SideLayout& side, PagePart<std::byte> part, std::int64_t slot,
               const float* row) {
  std::byte* const group = side.group(part, slot / kGroupKeys);
  float* const scales = side.scales(part, slot / kGroupKeys);
  const std::int64_t lane = slot % kGroupKeys;
  if (!kernels::is_quantised(side.storage)) {
    return kernels::with_number(
        side.storage, [&](auto number) { store_plain<decltype(number)>(side, group, lane, row); });
  }
  if (side.scales_blocks()) {
    store_int4(side, group, scales, lane, row);
  } else {
    store_int8(side, group, scales, lane, row);
  }
}

void copy_row(const SideLayout& side, PagePart<const std::byte> from_part, std::int64_t from,
              PagePart<std::byte> to_part, std::int64_t to) {
  const std::byte* const from_group = side.group(from_part, from / kGroupKeys);
  std::byte* const to_group = side.group(to_part, to / kGroupKeys);
  const std::int64_t from_lane = from % kGroupKeys;
  const std::int64_t to_lane = to % kGroupKeys;
  if (!kernels::is_quantised(side.storage)) {
    return kernels::with_number(side.storage, [&](auto number) {
      copy_plain<decltype(number)>(side, from_group, from_lane, to_group, to_lane);
    });
  }
  copy_quantised(side, from_group, from_lane, to_group, to_lane);
  const std::int64_t step = side.scales_blocks() ? kScaleDims : side.stored_dim;
  const float* const from_scales = side.scales(from_part, from / kGroupKeys);
  float* const to_scales = side.scales(to_part, to / kGroupKeys);
  for (std::int64_t d = 0; d < side.stored_dim; d += step) {
    to_scales[side.scale_index(to_lane, d)] = from_scales[side.scale_index(from_lane, d)];
  }
}

}}}  // namespace heed::v0::detail
