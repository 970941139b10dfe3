#include "core/check_tensor.h"

#include <fmt/format.h>

#include "heed/core/data_type.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

template <class T>
void check_layout(const char* function, const char* name, TensorView<const T> view) {
  if (view.rank() != 4) {
    throw InvalidArgument(
        fmt::format("{}: {} has shape {}, expected 4 dimensions [batch, heads, length, dim] "
                    "(view.to_rank(4) adds them)",
                    function, name, to_string(view.shape())));
  }
  if (view.extent(-1) > 1 && view.stride(-1) != 1) {
    throw InvalidArgument(fmt::format("{}: {} has stride {} in its innermost dimension, expected 1",
                                      function, name, view.stride(-1)));
  }
}

template <class T>
void check_tensor(const char* function, const char* name, TensorView<const T> view,
                  const Shape& expected) {
  if (view.shape() != expected) {
    throw InvalidArgument(fmt::format("{}: {} has shape {}, expected {}", function, name,
                                      to_string(view.shape()), to_string(expected)));
  }
  if (expected.rank() == 4) check_layout(function, name, view);
}

template <class Real>
void check_kept(const char* function, const char* name, TensorView<const Real> view,
                std::int64_t size) {
  check_tensor(function, name, view, {size});
  if (view.stride(0) == 1) return;
  throw InvalidArgument(
      fmt::format("{}: {} has a stride of {}, expected no gaps", function, name, view.stride(0)));
}

template void check_layout(const char*, const char*, FloatView);
template void check_layout(const char*, const char*, DoubleView);
template void check_layout(const char*, const char*, TensorView<const Float16>);
template void check_layout(const char*, const char*, TensorView<const BFloat16>);
template void check_kept(const char*, const char*, FloatView, std::int64_t);
template void check_kept(const char*, const char*, DoubleView, std::int64_t);
template void check_tensor(const char*, const char*, FloatView, const Shape&);
template void check_tensor(const char*, const char*, DoubleView, const Shape&);
template void check_tensor(const char*, const char*, TensorView<const Float16>, const Shape&);
template void check_tensor(const char*, const char*, TensorView<const BFloat16>, const Shape&);

}}  // namespace heed::v0
