// Results that are numbers.
#pragma once

#include "heed/models/model.h"
#include "heed/tensor.h"

namespace heed::inline v0::models {

// Where some number of a result is infinite or NaN: throws FormatError naming the first tensor with
// such an element, or InvalidArgument when all weights are finite. Looks at the weights only then.
void check_finite(const char* function, const Model::Parts& parts, FloatView result);

}  // namespace heed::inline v0::models
