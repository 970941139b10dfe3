// The state of a sequence: its positions, and their pages.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "attention/cache/page_pool.h"
#include "attention/cache/page_table.h"
#include "heed/attention/kv_cache.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 { namespace detail {

// Every function that changes a sequence checks and reserves first; if it throws, nothing has
// changed.
//
// Invariants: gone_end ≤ length; pages.end() is the number of pages for `length` positions; the gap
// of `pages` consists of the pages whose positions have all been dropped. A page is thus present if
// any of its positions is.
struct SequenceState {
  // Throws InvalidArgument if a bound is invalid.
  SequenceState(const char* function, std::shared_ptr<PagePool> shared, const KvBounds& bounds);
  SequenceState(const SequenceState&) = delete;
  SequenceState& operator=(const SequenceState&) = delete;
  ~SequenceState();

  // The state of a handle. Throws InvalidArgument if the handle was moved from or its pool was
  // destroyed.
  static SequenceState& of(const char* function, const KvSequence& sequence);

  template <class T>
  void append(TensorView<const T> key, TensorView<const T> value);
  std::unique_ptr<SequenceState> fork(const char* function, std::int64_t n) const;
  void truncate(const char* function, std::int64_t n);
  void accept(std::int64_t num_nodes, std::span<const std::int64_t> path);
  KvTensors dequantised() const;

  bool is_bounded() const { return bounds.window != kUnbounded; }
  // True if all positions that a query at this position sees are present.
  bool keeps_for(std::int64_t position) const {
    return !has_gap() || position - bounds.window + 1 >= gone_end;
  }
  // The positions sinks ≤ k < gone_end have been dropped, if this range is not empty.
  bool has_gap() const { return gone_end > bounds.sinks; }
  bool is_gone(std::int64_t position) const {
    return position >= bounds.sinks && position < gone_end;
  }

  std::shared_ptr<PagePool> pool;
  KvBounds bounds;
  PageTable pages;
  std::int64_t length = 0;
  std::int64_t gone_end = 0;

 private:
  bool is_consistent() const;
  void check_truncation(const char* function, std::int64_t n) const;
  // The number of nodes at the beginning of an accepted path that are in their places already.
  std::int64_t check_path(std::int64_t num_nodes, std::span<const std::int64_t> path) const;
  // The gone_end for a new length.
  std::int64_t gone_end_at(std::int64_t new_length) const;
  void drop_to(std::int64_t n) noexcept;
  // shared_pages() is the number of pages begin ≤ j < end that other sequences have too;
  // copy_shared_pages() replaces these with copies.
  std::int64_t shared_pages(RowRange range) const;
  void copy_shared_pages(RowRange range) noexcept;
  void move_row(std::int64_t from, std::int64_t to) noexcept;
};

}}}  // namespace heed::v0::detail
