// Checks that results are finite.
#pragma once

#include "heed/core/tensor.h"
#include "heed/models/model.h"

namespace heed { inline namespace v0 { namespace models {

// If a result has an element that is infinite or NaN, throws FormatError naming the first tensor
// with such an element, or InvalidArgument if all weights are finite. Weights are checked only in
// this case.
void check_finite(const char* function, const Model::Parts& parts, FloatView result);

}}}  // namespace heed::v0::models
