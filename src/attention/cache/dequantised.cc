// KvSequence::dequantised: the keys and values of a sequence as tensors.
#include <algorithm>
#include <vector>

#include "attention/cache/rotation.h"
#include "attention/cache/sequence_state.h"
#include "attention/cache/stored_rows.h"
#include "core/float_environment.h"

namespace heed { inline namespace v0 { namespace detail {

namespace {

// [num_kv_heads, length, dim]
Tensor<float> numbers(const SequenceState& state, const SideLayout& side) {
  const PageLayout& layout = state.pool->layout();
  Tensor<float> result({layout.num_kv_heads, state.length, side.dim});
  std::vector<float> row(static_cast<std::size_t>(side.stored_dim));
  float* to = result.data();
  for (std::int64_t h = 0; h < layout.num_kv_heads; ++h) {
    for (std::int64_t k = 0; k < state.length; ++k, to += side.dim) {
      if (state.is_gone(k)) continue;
      const Page* const page = state.pages[k / layout.page_size];
      const std::int64_t slot = k % layout.page_size;
      load_rows(nullptr, side, page->part(h), {slot, slot + 1}, row.data());
      if (side.is_rotated()) rotate(row.data(), side.stored_dim);
      std::copy_n(row.begin(), side.dim, to);
    }
  }
  return result;
}

}  // namespace

KvTensors SequenceState::dequantised() const {
  const FloatEnvironment environment;
  return {numbers(*this, pool->layout().key), numbers(*this, pool->layout().value)};
}

}}}  // namespace heed::v0::detail
