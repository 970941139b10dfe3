// Pictures of the weights that the verb run computed.
#pragma once

#include "array_attention.h"
#include "picture_file.h"

namespace heed::cli {

// Returns a figure of every head of batch entry 0 with masked keys hatched, the explorer with these
// heads, and all weights as JSON. `problem` and `result` must outlive the picture, and the result
// must have weights.
Picture picture_of(const ArrayProblem& problem, const ArrayResult& result,
                   const PictureArguments& arguments);

}  // namespace heed::cli
