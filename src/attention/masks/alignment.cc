// The alignment of queries with keys.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/masks/aligned.h"
#include "attention/masks/query_offsets.h"
#include "heed/attention/mask.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace detail {

std::string side_text(std::int64_t keys) {
  return keys == kUnbounded ? "unbounded" : fmt::format("{}", keys);
}

void check_number(const char* function, const char* name, std::int64_t number, std::int64_t least,
                  std::int64_t most) {
  if (number >= least && number <= most) return;
  throw InvalidArgument(
      fmt::format("{}: {} is {}, expected {} to {}", function, name, number, least, most));
}

void check_key_lengths(std::string_view mask_name, const std::vector<std::int64_t>& lengths,
                       const ScoreShape& shape) {
  if (static_cast<std::int64_t>(lengths.size()) != shape.batch) {
    throw InvalidArgument(fmt::format("{}: {} lengths were given but batch is {}", mask_name,
                                      lengths.size(), shape.batch));
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0) {
      throw InvalidArgument(
          fmt::format("{}: lengths[{}] is {}, expected at least 0", mask_name, i, lengths[i]));
    }
    if (lengths[i] > shape.kv_len) {
      throw InvalidArgument(fmt::format("{}: lengths[{}] is {} but kv_len is {}", mask_name, i,
                                        lengths[i], shape.kv_len));
    }
  }
}

}  // namespace detail

Alignment Alignment::bottom_right(std::vector<std::int64_t> lengths) {
  Alignment alignment(Kind::kLengths, 0);
  alignment.lengths_ = std::make_shared<const std::vector<std::int64_t>>(std::move(lengths));
  return alignment;
}

void Alignment::check(std::string_view mask_name, const ScoreShape& shape) const {
  const std::int64_t to_last_key = shape.kv_len - shape.q_len;
  switch (kind_) {
    case Kind::kSquare:
      for_each_offset(shape.query_offset, [&](const std::string& name, std::int64_t offset) {
        if (offset == to_last_key) return;
        throw InvalidArgument(
            fmt::format("{}: q_len is {} and {} {} but kv_len is {}; where lengths differ, name "
                        "the alignment: top_left, bottom_right or an offset",
                        mask_name, shape.q_len, name, offset, shape.kv_len));
      });
      return;
    case Kind::kLengths:
      detail::check_key_lengths(mask_name, *lengths_, shape);
      [[fallthrough]];
    case Kind::kBottomRight:
      check_agreement(mask_name, shape);
      return;
    case Kind::kOffset:
      if (offset_ >= -detail::kMaxOffset && offset_ <= detail::kMaxOffset) return;
      throw InvalidArgument(
          fmt::format("{}: offset {} is beyond any position", mask_name, offset_));
  }
}

void Alignment::check_agreement(std::string_view mask_name, const ScoreShape& shape) const {
  if (is_zero(shape.query_offset)) return;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    const std::int64_t offset = shape.query_offset[b];
    const std::int64_t position = resolve(shape, b);
    if (offset == position) continue;
    const bool differs = kind_ == Kind::kLengths || shape.query_offset.is_per_entry();
    throw InvalidArgument(fmt::format(
        "{}: bottom_right puts query 0{} at position {} but query_offset is {}", mask_name,
        differs ? fmt::format(" of batch entry {}", b) : "", position, offset));
  }
}

std::int64_t Alignment::resolve(const ScoreShape& shape, std::int64_t batch) const {
  if (kind_ == Kind::kOffset) return shape.query_offset[batch] + offset_;
  if (kind_ == Kind::kLengths) return (*lengths_)[static_cast<std::size_t>(batch)] - shape.q_len;
  return shape.kv_len - shape.q_len;
}

std::string Alignment::description() const {
  switch (kind_) {
    case Kind::kSquare:
      return "";
    case Kind::kBottomRight:
      return "bottom_right";
    case Kind::kLengths:
      return fmt::format("bottom_right({})", fmt::join(*lengths_, ", "));
    case Kind::kOffset:
      return offset_ == 0 ? "top_left" : fmt::format("offset({})", offset_);
  }
  return "";
}

}}  // namespace heed::v0
