#include "attention/cache/sequence_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "attention/cache/stored_rows.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace detail {

namespace {

constexpr const char* kAccept = "KvSequence::accept";

// The largest bound, so that sums of bounds do not overflow.
constexpr std::int64_t kMostBound = std::int64_t{1} << 32;

void check_bound(const char* function, const char* name, std::int64_t found, std::int64_t least) {
  if (found >= least && found <= kMostBound) return;
  throw InvalidArgument(
      fmt::format("{}: {} is {}, expected {} to {}", function, name, found, least, kMostBound));
}

KvBounds checked(const char* function, const KvBounds& bounds) {
  if (bounds.window == kUnbounded) {
    if (bounds.sinks == 0) return bounds;
    throw InvalidArgument(
        fmt::format("{}: sinks is {} without a window, expected 0: everything is kept", function,
                    bounds.sinks));
  }
  check_bound(function, "window", bounds.window, 1);
  check_bound(function, "sinks", bounds.sinks, 0);
  check_bound(function, "max_append", bounds.max_append, 1);
  check_bound(function, "rewind", bounds.rewind, 0);
  return bounds;
}

}  // namespace

SequenceState::SequenceState(const char* function, std::shared_ptr<PagePool> shared,
                             const KvBounds& wanted)
    : pool(std::move(shared)),
      bounds(checked(function, wanted)),
      pages(pool->layout().pages(bounds.sinks)) {
  if (is_bounded()) pool->make_zeros();
}

SequenceState::~SequenceState() {
  if (!pool->is_open()) return;
  // Releases the first page last, so that it is the first to be taken again.
  for (auto page = pages.pages().rbegin(); page != pages.pages().rend(); ++page) {
    pool->release(*page);
  }
}

SequenceState& SequenceState::of(const char* function, const KvSequence& sequence) {
  if (sequence.state_ == nullptr) {
    throw InvalidArgument(fmt::format("{}: the sequence was moved from", function));
  }
  if (!sequence.state_->pool->is_open()) {
    throw InvalidArgument(fmt::format("{}: the pool of the sequence is gone", function));
  }
  return *sequence.state_;
}

std::int64_t SequenceState::gone_end_at(std::int64_t new_length) const {
  if (!is_bounded()) return 0;
  return std::max(gone_end, new_length - (bounds.window + bounds.max_append - 1 + bounds.rewind));
}

std::unique_ptr<SequenceState> SequenceState::fork(const char* function, std::int64_t n) const {
  check_truncation(function, n);
  auto copy = std::make_unique<SequenceState>(function, pool, bounds);
  copy->pages = pages;
  for (Page* page : copy->pages.pages()) ++page->references;
  copy->length = length;
  copy->gone_end = gone_end;
  copy->drop_to(n);
  return copy;
}

void SequenceState::check_truncation(const char* function, std::int64_t n) const {
  if (n < 0 || n > length) {
    throw InvalidArgument(
        fmt::format("{}: n is {}, expected 0 to the length, {}", function, n, length));
  }
  if (n <= bounds.sinks || keeps_for(n)) return;
  throw InvalidArgument(fmt::format(
      "{}: n is {}, but positions {} to {} are gone and a query at {} sees from {} on; rewind is "
      "{}",
      function, n, bounds.sinks, gone_end - 1, n, n - bounds.window + 1, bounds.rewind));
}

void SequenceState::truncate(const char* function, std::int64_t n) {
  check_truncation(function, n);
  drop_to(n);
}

void SequenceState::drop_to(std::int64_t n) noexcept {
  pages.shrink(pool->layout().pages(n), [&](Page* page) { pool->release(page); });
  length = n;
  if (n <= bounds.sinks) gone_end = 0;
  assert(is_consistent());
}

bool SequenceState::is_consistent() const {
  const PageLayout& layout = pool->layout();
  const std::int64_t first_kept = std::max(layout.pages(bounds.sinks), gone_end / layout.page_size);
  return gone_end <= length && pages.end() == layout.pages(length) && pages.gap_end() == first_kept;
}

std::int64_t SequenceState::shared_pages(RowRange range) const {
  std::int64_t count = 0;
  for (std::int64_t j = range.begin; j < range.end; ++j) count += pages[j]->references > 1 ? 1 : 0;
  return count;
}

void SequenceState::copy_shared_pages(RowRange range) noexcept {
  for (std::int64_t j = range.begin; j < range.end; ++j) {
    Page* const page = pages[j];
    if (page->references == 1) continue;
    pages.replace(j, pool->take_copy(*page));
    pool->release(page);
  }
}

void SequenceState::move_row(std::int64_t from, std::int64_t to) noexcept {
  const PageLayout& layout = pool->layout();
  for (std::int64_t h = 0; h < layout.num_kv_heads; ++h) {
    const auto source = pages[from / layout.page_size]->part(h);
    const auto target = pages[to / layout.page_size]->part(h);
    for (const SideLayout* side : {&layout.key, &layout.value}) {
      copy_row(*side, source, from % layout.page_size, target, to % layout.page_size);
    }
  }
}

std::int64_t SequenceState::check_path(std::int64_t num_nodes,
                                       std::span<const std::int64_t> path) const {
  const std::int64_t base = length - num_nodes;
  std::int64_t stay = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::int64_t node = path[i];
    if (node < 0 || node >= num_nodes) {
      throw InvalidArgument(
          fmt::format("{}: path[{}] is {}, {}", kAccept, i, node,
                      num_nodes == 0 ? "but num_nodes is 0"
                                     : fmt::format("expected a node, 0 to {}", num_nodes - 1)));
    }
    if (i > 0 && node <= path[i - 1]) {
      throw InvalidArgument(
          fmt::format("{}: path[{}] is {} and path[{}] is {}, expected nodes that rise", kAccept,
                      i - 1, path[i - 1], i, node));
    }
    const auto place = static_cast<std::int64_t>(i);
    if (node == place) {
      ++stay;
    } else if (is_gone(base + node) || is_gone(base + place)) {
      throw InvalidArgument(fmt::format(
          "{}: path[{}] is {}: position {} becomes position {}, but positions {} to {} "
          "are gone; rewind is {}",
          kAccept, i, node, base + node, base + place, bounds.sinks, gone_end - 1, bounds.rewind));
    }
  }
  return stay;
}

void SequenceState::accept(std::int64_t num_nodes, std::span<const std::int64_t> path) {
  if (num_nodes < 0 || num_nodes > length) {
    throw InvalidArgument(fmt::format("{}: num_nodes is {}, expected 0 to the length, {}", kAccept,
                                      num_nodes, length));
  }
  const std::int64_t base = length - num_nodes;
  const std::int64_t end = base + static_cast<std::int64_t>(path.size());
  const std::int64_t stay = check_path(num_nodes, path);
  check_truncation(kAccept, end);
  const PageLayout& layout = pool->layout();
  const RowRange written{(base + stay) / layout.page_size, layout.pages(end)};
  if (base + stay < end) {
    pool->reserve(kAccept, shared_pages(written));
    copy_shared_pages(written);
  }
  for (std::int64_t i = stay; base + i < end; ++i) {
    move_row(base + path[static_cast<std::size_t>(i)], base + i);
  }
  drop_to(end);
}

}}}  // namespace heed::v0::detail
