// A sequence: which positions it has, and the pages they are on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "attention/cache/page_pool.h"
#include "attention/cache/page_table.h"
#include "heed/attention/kv_cache.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 { namespace detail {

// Everything that changes a sequence checks and reserves first: where it throws, nothing changed.
//
// Always: gone_end ≤ length, pages.end() is the number of pages that `length` positions take, and
// the gap of `pages` has those pages whose positions are all gone. So a page is there where one of
// its positions is.
struct SequenceState {
  // Throws InvalidArgument when a bound means nothing.
  SequenceState(const char* function, std::shared_ptr<PagePool> shared, const KvBounds& bounds);
  SequenceState(const SequenceState&) = delete;
  SequenceState& operator=(const SequenceState&) = delete;
  ~SequenceState();

  // The state of a handle; throws InvalidArgument where it was moved from or its pool is gone.
  static SequenceState& of(const char* function, const KvSequence& sequence);

  template <class T>
  void append(TensorView<const T> key, TensorView<const T> value);
  std::unique_ptr<SequenceState> fork(const char* function, std::int64_t n) const;
  void truncate(const char* function, std::int64_t n);
  void accept(std::int64_t num_nodes, std::span<const std::int64_t> path);
  KvTensors dequantised() const;

  bool is_bounded() const { return bounds.window != kUnbounded; }
  // Whether all that a query at this position sees is there.
  bool keeps_for(std::int64_t position) const {
    return !has_gap() || position - bounds.window + 1 >= gone_end;
  }
  // What was in sinks ≤ k < gone_end is not there any more, unless this is empty.
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
  // How many nodes at the beginning of an accepted path are where they belong.
  std::int64_t check_path(std::int64_t num_nodes, std::span<const std::int64_t> path) const;
  // What gone_end becomes as the length becomes this.
  std::int64_t gone_end_at(std::int64_t new_length) const;
  void drop_to(std::int64_t n) noexcept;
  // How many of the pages begin ≤ j < end other sequences have, too; and own copies of them.
  std::int64_t shared_pages(RowRange range) const;
  void copy_shared_pages(RowRange range) noexcept;
  void move_row(std::int64_t from, std::int64_t to) noexcept;
};

}}}  // namespace heed::v0::detail
