// Calls of the public interface of attention, by the bits of what they return.
//
// Nothing here is of the library's inside, so that the same calls can be made whatever becomes of
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace heed::bits {

struct Call {
  std::string description;
  // Whether bits depend on how exactly the C library computes exp and log in double.
  bool needs_libm = false;
  std::function<std::uint64_t()> hash;
};

// Calls of one kind, whose hashes are a file of the tests' data.
struct Group {
  std::string_view name;
  std::vector<Call> (*calls)();
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
inline void PrintTo(const Group& group, std::ostream* out) { *out << group.name; }

// Every group. The first call of each, "libm", tells C libraries apart.
const std::vector<Group>& groups();

}  // namespace heed::bits
