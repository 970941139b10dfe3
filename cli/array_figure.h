// What the verb run can show of its weights.
#pragma once

#include "array_attention.h"
#include "picture_file.h"

namespace heed::cli {

// A figure of every head of batch entry 0, masked keys hatched; the explorer with these heads; all
// weights as JSON. Problem and result outlive the picture, and the result has weights.
Picture picture_of(const ArrayProblem& problem, const ArrayResult& result,
                   const PictureArguments& arguments);

}  // namespace heed::cli
