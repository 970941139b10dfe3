// Functions for all that take a query_offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

// Throws InvalidArgument, whose message begins with `function`, unless there is one number or one
// for each batch entry.
void check_count(std::string_view function, const ScoreShape& shape);

// Calls visit(name, offset) for each number. The name is "query_offset", or, e.g.,
// "query_offset[2]" if there are several.
template <class Visit>
void for_each_offset(const QueryOffset& offset, Visit visit) {
  std::size_t i = 0;
  for (const std::int64_t one : offset.values()) {
    visit(offset.is_per_entry() ? "query_offset[" + std::to_string(i) + "]"
                                : std::string("query_offset"),
          one);
    ++i;
  }
}

inline bool is_zero(const QueryOffset& offset) {
  for (const std::int64_t one : offset.values()) {
    if (one != 0) return false;
  }
  return true;
}

// The numbers as text: "17" or "17, 5, 0".
std::string to_string(const QueryOffset& offset);

}}  // namespace heed::v0
