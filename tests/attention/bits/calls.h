// Calls of the public interface of attention and the hashes of their results.
//
// This file uses nothing internal to the library, so that the same calls work after any change of
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
  std::function<std::uint64_t()> hash;
};

// Calls of one kind, whose hashes are one file of the tests' data.
struct Group {
  std::string_view name;
  std::vector<Call> (*calls)();
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
inline void PrintTo(const Group& group, std::ostream* out) { *out << group.name; }

// Returns every group.
const std::vector<Group>& groups();

}  // namespace heed::bits
