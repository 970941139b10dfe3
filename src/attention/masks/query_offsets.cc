#include "attention/masks/query_offsets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <utility>
#include <vector>

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

QueryOffset::QueryOffset(std::vector<std::int64_t> of_each)
    : of_each_(std::make_shared<const std::vector<std::int64_t>>(std::move(of_each))) {}

QueryOffset& QueryOffset::operator+=(std::int64_t distance) {
  if (of_each_ == nullptr) {
    of_all_ += distance;
    return *this;
  }
  std::vector<std::int64_t> moved = *of_each_;
  for (std::int64_t& offset : moved) offset += distance;
  return *this = QueryOffset(std::move(moved));
}

std::string to_string(const QueryOffset& offset) {
  return fmt::format("{}", fmt::join(offset.values(), ", "));
}

}}  // namespace heed::v0
