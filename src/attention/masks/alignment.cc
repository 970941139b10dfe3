// Where queries stand among the keys.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/masks/aligned.h"
#include "heed/error.h"
#include "heed/mask.h"

namespace heed::inline v0 {

namespace detail {

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
      if (shape.query_offset == to_last_key) return;
      throw InvalidArgument(
          fmt::format("{0}: q_len is {1} and query_offset {2} but kv_len is {3}; where lengths "
                      "differ, name the "
                      "alignment: top_left, bottom_right or an offset",
                      mask_name, shape.q_len, shape.query_offset, shape.kv_len));
    case Kind::kBottomRight:
      if (shape.query_offset == 0 || shape.query_offset == to_last_key) return;
      throw InvalidArgument(
          fmt::format("{}: bottom_right puts query 0 at position {} but query_offset is {}",
                      mask_name, to_last_key, shape.query_offset));
    case Kind::kLengths:
      detail::check_key_lengths(mask_name, *lengths_, shape);
      if (shape.query_offset == 0) return;
      throw InvalidArgument(fmt::format(
          "{}: bottom_right with lengths says where queries stand, but query_offset is {}",
          mask_name, shape.query_offset));
    case Kind::kOffset:
      if (offset_ >= -detail::kMaxOffset && offset_ <= detail::kMaxOffset) return;
      throw InvalidArgument(
          fmt::format("{}: offset {} is beyond any position", mask_name, offset_));
  }
}

std::int64_t Alignment::resolve(const ScoreShape& shape, std::int64_t batch) const {
  if (kind_ == Kind::kOffset) return shape.query_offset + offset_;
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
      return fmt::format("bottom_right of {}", fmt::join(*lengths_, ", "));
    case Kind::kOffset:
      return offset_ == 0 ? "top_left" : fmt::format("offset {}", offset_);
  }
  return "";
}

}  // namespace heed::inline v0
