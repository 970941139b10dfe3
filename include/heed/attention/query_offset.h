/// The positions of a call's queries in their sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// The position of query 0 in its sequence: one number for all batch entries, or one for each, for
/// caches that are filled to different lengths. Query q is at position q + offset[batch]. A value;
/// copies share their state.
///
///     options.query_offset = 17;
///     options.query_offset = std::vector<std::int64_t>{17, 5, 0};  // three batch entries
class QueryOffset {
 public:
  QueryOffset(std::int64_t of_all = 0) noexcept  // NOLINT(google-explicit-constructor)
      : of_all_(of_all) {}
  QueryOffset(std::vector<std::int64_t> of_each)  // NOLINT(google-explicit-constructor)
      : of_each_(std::make_shared<const std::vector<std::int64_t>>(std::move(of_each))) {}

  std::int64_t operator[](std::int64_t batch) const noexcept {
    return of_each_ == nullptr ? of_all_ : (*of_each_)[static_cast<std::size_t>(batch)];
  }

  /// True if every batch entry has its own number.
  bool is_per_entry() const noexcept { return of_each_ != nullptr; }
  /// The numbers of all batch entries, or the single one that all share.
  std::span<const std::int64_t> values() const noexcept {
    return of_each_ == nullptr ? std::span(&of_all_, 1) : std::span(*of_each_);
  }

  /// Adds `distance` to all positions.
  QueryOffset& operator+=(std::int64_t distance) {
    if (of_each_ == nullptr) {
      of_all_ += distance;
      return *this;
    }
    std::vector<std::int64_t> moved = *of_each_;
    for (std::int64_t& offset : moved) offset += distance;
    return *this = QueryOffset(std::move(moved));
  }
  QueryOffset& operator-=(std::int64_t distance) { return *this += -distance; }

 private:
  std::int64_t of_all_ = 0;
  std::shared_ptr<const std::vector<std::int64_t>> of_each_;
};

}}  // namespace heed::v0
