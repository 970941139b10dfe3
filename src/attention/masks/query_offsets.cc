#include "attention/masks/query_offsets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heed/core/error.h"

namespace heed { inline namespace v0 {

void check_count(std::string_view function, const ScoreShape& shape) {
  const auto count = static_cast<std::int64_t>(shape.query_offset.values().size());
  if (!shape.query_offset.is_per_entry() || count == shape.batch) return;
  throw InvalidArgument(
      fmt::format("{}: query_offset has {} numbers but batch is {}, expected one for all or one "
                  "for each batch entry",
                  function, count, shape.batch));
}

std::string to_string(const QueryOffset& offset) {
  return fmt::format("{}", fmt::join(offset.values(), ", "));
}

}}  // namespace heed::v0
