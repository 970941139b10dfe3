// Results that are numbers.
#pragma once

#include "heed/core/tensor.h"
#include "heed/models/model.h"

namespace heed { inline namespace v0 { namespace models {

// Where some number of a result is infinite or NaN: throws FormatError naming the first tensor with
// such an element, or InvalidArgument when all weights are finite. Looks at the weights only then.
void check_finite(const char* function, const Model::Parts& parts, FloatView result);

}}}  // namespace heed::v0::models
