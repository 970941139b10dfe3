// Problems with drawn options: more than a table could name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed::bits {

// A kind of computation, and the hash of its results for problem number `seed`.
struct DrawnKind {
  std::string_view name;
  std::uint64_t (*hash)(std::uint64_t seed);
};

const std::vector<DrawnKind>& drawn_kinds();

// Problem number `seed` of a kind, in words.
std::string describe(const DrawnKind& kind, std::uint64_t seed);

// The hash of the results of problems first ≤ seed < last of a kind.
std::uint64_t hash_of_drawn(const DrawnKind& kind, std::uint64_t first, std::uint64_t last);

}  // namespace heed::bits
