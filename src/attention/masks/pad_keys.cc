// A mask given as a tensor with fewer keys than the scores.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "attention/kernels/score_loops.h"
#include "heed/attention/mask.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

template <class T>
Tensor<T> padded(TensorView<const T> mask, std::int64_t kv_len, T fill) {
  if (mask.rank() == 0 || mask.extent(-1) > kv_len) {
    throw InvalidArgument(
        fmt::format("pad_keys: the mask has shape {}, expected [..., keys] with at most {} keys",
                    to_string(mask.shape()), kv_len));
  }
  std::array<std::int64_t, kMaxRank> extents{};
  std::copy(mask.shape().begin(), mask.shape().end(), extents.begin());
  const auto rank = static_cast<std::size_t>(mask.rank());
  extents[rank - 1] = kv_len;
  auto result = Tensor<T>::uninitialized(Shape(std::span(extents.data(), rank)));
  std::fill_n(result.data(), result.num_elements(), fill);
  T* out = result.data();
  const std::int64_t keys = mask.extent(-1);
  std::int64_t key = 0;
  for_each_element(mask, [&](const T& element) {
    if constexpr (std::is_same_v<T, bool>) {
      *out++ = kernels::is_set(element);
    } else {
      *out++ = element;
    }
    if (++key < keys) return;
    out += kv_len - keys;
    key = 0;
  });
  return result;
}

}  // namespace

Tensor<bool> pad_keys(TensorView<const bool> allowed, std::int64_t kv_len) {
  return padded(allowed, kv_len, false);
}
Tensor<float> pad_keys(FloatView added, std::int64_t kv_len) {
  return padded(added, kv_len, -std::numeric_limits<float>::infinity());
}

}}  // namespace heed::v0
