// Checks of tensors that are given as arguments. All throw InvalidArgument, with `function` in
// front.
#pragma once

#include <cstdint>

#include "heed/core/shape.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

// `view`, called `name`, has four dimensions, the innermost one contiguous.
template <class T>
void check_layout(const char* function, const char* name, TensorView<const T> view);

// `view`, called `name`, has the given shape and, when it is of rank 4, a contiguous innermost
// dimension.
template <class T>
void check_tensor(const char* function, const char* name, TensorView<const T> view,
                  const Shape& expected);

// `view`, called `name`, has `size` numbers in one dimension without gaps.
template <class Real>
void check_kept(const char* function, const char* name, TensorView<const Real> view,
                std::int64_t size);

}}  // namespace heed::v0
