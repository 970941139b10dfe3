// Caches drawn by RapidCheck. Half of all drawn numbers are at a boundary.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "attention/cache/model.h"
#include "heed/attention/kv_cache.h"

namespace heed::testing_support {

// Draws from the whole range, independent of RapidCheck's size parameter.
template <class T>
T drawn(T begin, T end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(begin, end));
}

inline KvConfig draw_config(std::int64_t most_pages) {
  const auto storage = [] {
    return *rc::gen::element(KvStorage::kFloat32, KvStorage::kFloat32, KvStorage::kFloat16,
                             KvStorage::kBFloat16, KvStorage::kInt8, KvStorage::kInt4);
  };
  return {.num_kv_heads = drawn<std::int64_t>(1, 4),
          .head_dim = *rc::gen::element<std::int64_t>(1, 3, 8, 16, 33),
          .value_dim = *rc::gen::element<std::int64_t>(1, 4, 17, 32),
          .key_storage = storage(),
          .value_storage = storage(),
          .page_size = *rc::gen::element<std::int64_t>(16, 32, 64, 128),
          .max_pages = drawn<std::int64_t>(most_pages / 10, most_pages)};
}

// Draws 0, 1 or a page size as often as all other numbers in least ≤ bound < most.
inline std::int64_t draw_bound(std::int64_t page_size, std::int64_t least, std::int64_t most) {
  if (*rc::gen::arbitrary<bool>()) return drawn(least, most);
  return std::max(least, *rc::gen::element<std::int64_t>(0, 0, 0, 1, 1, 1, 2, page_size - 1,
                                                         page_size, page_size + 1));
}

// The sequences that are bounded.
enum class Bounded { kSome, kAll };

inline KvBounds draw_bounds(const KvConfig& config, Bounded bounded) {
  if (bounded == Bounded::kSome && drawn<int>(0, 2) > 0) return {};
  return {.window = draw_bound(config.page_size, 1, 40),
          .sinks = draw_bound(config.page_size, 0, 21),
          .max_append = draw_bound(config.page_size, 1, 30),
          .rewind = draw_bound(config.page_size, 0, 20)};
}

// Draws a length to truncate to, in half of the cases at a page border; sometimes one that is not
// allowed.
inline std::int64_t draw_end(const ModelLength& sequence, std::int64_t page_size) {
  if (drawn<int>(0, 6) == 0) return drawn<std::int64_t>(0, sequence.length() + 1);
  const std::vector<std::int64_t> ends = sequence.ends();
  std::vector<std::int64_t> borders;
  std::copy_if(ends.begin(), ends.end(), std::back_inserter(borders),
               [page_size](std::int64_t n) { return n > 0 && n % page_size == 0; });
  const auto& some = !borders.empty() && *rc::gen::arbitrary<bool>() ? borders : ends;
  return some[drawn<std::size_t>(0, some.size())];
}

}  // namespace heed::testing_support
