// Checks of tensors that are arguments. All throw InvalidArgument, whose message begins with
// `function`.
#pragma once

#include <cstdint>

#include "heed/core/shape.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

// Checks that `view`, called `name`, has four dimensions, the innermost of which is contiguous.
template <class T>
void check_layout(const char* function, const char* name, TensorView<const T> view);

// Checks that `view`, called `name`, has the given shape and, if it has rank 4, a contiguous
// innermost dimension.
template <class T>
void check_tensor(const char* function, const char* name, TensorView<const T> view,
                  const Shape& expected);

// Checks that `view`, called `name`, has one contiguous dimension of `size` numbers.
template <class Real>
void check_kept(const char* function, const char* name, TensorView<const Real> view,
                std::int64_t size);

}}  // namespace heed::v0
