// KvSequence::append: converts rows of any floating-point type to the storage of pages.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "attention/cache/rotation.h"
#include "attention/cache/sequence_state.h"
#include "attention/cache/stored_rows.h"
#include "core/float_environment.h"
#include "heed/core/data_type.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace detail {

namespace {

constexpr const char* kAppend = "KvSequence::append";

// Masks and score terms use 32-bit positions.
constexpr std::int64_t kMostPositions = std::numeric_limits<std::int32_t>::max();

// The expected shape of a key or a value: [num_kv_heads, n, dim], or with a 1 in front.
struct Expected {
  const char* name;
  const char* dim_name;
  std::int64_t heads;
  std::optional<std::int64_t> n;  // for values, the n of the key
  std::int64_t dim;
};

// The view without the leading 1.
template <class T>
TensorView<const T> checked(TensorView<const T> given, const Expected& expected) {
  const bool has_batch = given.rank() == 4 && given.extent(0) == 1;
  const TensorView<const T> view = has_batch ? given.select(0, 0) : given;
  if (view.rank() != 3 || view.extent(0) != expected.heads || view.extent(2) != expected.dim ||
      view.extent(1) != expected.n.value_or(view.extent(1))) {
    throw InvalidArgument(fmt::format(
        "{}: {} has shape {}, expected [num_kv_heads, n, {}] = [{}, {}, {}]{}, or with a 1 in "
        "front",
        kAppend, expected.name, to_string(given.shape()), expected.dim_name, expected.heads,
        expected.n ? fmt::format("{}", *expected.n) : "n", expected.dim,
        expected.n ? " with the n of the key" : ""));
  }
  if (expected.dim > 1 && view.stride(-1) != 1) {
    throw InvalidArgument(fmt::format("{}: {} has stride {} in its innermost dimension, expected 1",
                                      kAppend, expected.name, view.stride(-1)));
  }
  return view;
}

// The keys or the values that are appended.
template <class T>
class NewRows {
 public:
  NewRows(const char* name, TensorView<const T> view, const SideLayout& side)
      : name_(name),
        view_(view),
        side_(&side),
        row_(static_cast<std::size_t>(side.stored_dim), 0.0F) {}

  // Checks that the storage can hold every number. `first` is the place of the first position.
  void check_numbers(std::int64_t first) {
    if (!side_->is_quantised()) return;
    const float limit = side_->is_rotated() ? kRotationLimit : kInfinity;
    for (std::int64_t h = 0; h < view_.extent(0); ++h) {
      for (std::int64_t i = 0; i < view_.extent(1); ++i) {
        read(h, i);
        if (largest_magnitude(row_.data(), side_->dim) < limit) continue;
        const auto found = std::find_if(row_.begin(), row_.end(),
                                        [&](float number) { return !(std::abs(number) < limit); });
        throw InvalidArgument(
            fmt::format("{}: {} of position {} and key head {} holds {}, but {} takes {}", kAppend,
                        name_, first + i, h, *found, to_string(side_->storage),
                        side_->is_rotated() ? "numbers below 2^112" : "finite numbers"));
      }
    }
  }

  // Stores position i of key head h at `slot` of a part.
  void store(std::int64_t h, std::int64_t i, PagePart<std::byte> part, std::int64_t slot) {
    read(h, i);
    if (side_->is_rotated()) rotate(row_.data(), side_->stored_dim);
    store_row(*side_, part, slot, row_.data());
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Below this limit, sums of 2¹⁶ numbers, the most that a rotation adds, are finite.
  static constexpr float kRotationLimit = 0x1p112F;

  // Sets row_ to position i of key head h, padded with zeros.
  void read(std::int64_t h, std::int64_t i) {
    const T* from = view_.data() + h * view_.stride(0) + i * view_.stride(1);
    std::fill(std::copy_n(from, side_->dim, row_.begin()), row_.end(), 0.0F);
  }

  const char* name_;
  TensorView<const T> view_;
  const SideLayout* side_;
  std::vector<float> row_;
};

void check_length(const SequenceState& state, std::int64_t n) {
  if (state.is_bounded() && n > state.bounds.max_append) {
    throw InvalidArgument(fmt::format("{}: {} positions are appended, but max_append is {}",
                                      kAppend, n, state.bounds.max_append));
  }
  if (n > kMostPositions - state.length) {
    throw InvalidArgument(fmt::format("{}: {} positions and {} more are above {}", kAppend,
                                      state.length, n, kMostPositions));
  }
}

}  // namespace

template <class T>
void SequenceState::append(TensorView<const T> key, TensorView<const T> value) {
  const FloatEnvironment environment;
  const PageLayout& layout = pool->layout();
  const std::int64_t heads = layout.num_kv_heads;
  key = checked(key, {"key", "head_dim", heads, std::nullopt, layout.key.dim});
  const std::int64_t n = key.extent(1);
  value = checked(value, {"value", "value_dim", heads, n, layout.value.dim});
  NewRows<T> keys("key", key, layout.key);
  NewRows<T> values("value", value, layout.value);
  check_length(*this, n);
  keys.check_numbers(length);
  values.check_numbers(length);
  if (n == 0) return;

  const std::int64_t new_gone_end = gone_end_at(length + n);
  const RowRange going{pages.gap_end(), std::max(new_gone_end / layout.page_size, pages.gap_end())};
  const RowRange last{length / layout.page_size,
                      pages.end()};  // the page with room, if there is one
  const std::int64_t released = going.end - going.begin - shared_pages(going);
  const std::int64_t copied = shared_pages(last);
  const std::int64_t added = layout.pages(length + n) - pages.end();
  pages.reserve(added);
  pool->reserve(kAppend, added + copied, released);

  for (std::int64_t j = going.begin; j < going.end; ++j) pool->release(pages[j]);
  pages.widen_gap(going.end);
  gone_end = new_gone_end;
  copy_shared_pages(last);
  for (std::int64_t j = 0; j < added; ++j) {
    pages.push(pool->take(pages.end() == 0 ? nullptr : pages[pages.end() - 1]));
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const Page& page = *pages[(length + i) / layout.page_size];
    for (std::int64_t h = 0; h < layout.num_kv_heads; ++h) {
      keys.store(h, i, page.part(h), (length + i) % layout.page_size);
      values.store(h, i, page.part(h), (length + i) % layout.page_size);
    }
  }
  length += n;
  assert(is_consistent());
}

template void SequenceState::append(FloatView, FloatView);
template void SequenceState::append(Float16View, Float16View);
template void SequenceState::append(BFloat16View, BFloat16View);

}}}  // namespace heed::v0::detail
