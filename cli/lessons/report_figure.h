// The matrices of a lesson as a figure.
#pragma once

#include <string>

#include "heed/viz/figure.h"
#include "lessons/report.h"
#include "picture_file.h"

namespace heed::cli {

// A panel for each matrix that the lesson showed, of which there is at least one: weights on a
// scale from 0 to 1, other numbers from red over white at 0 to blue. What a mask made −∞ or a large
// negative number is hatched.
Figure draw_matrices(const Report& report, const std::string& title,
                     const PictureArguments& arguments);

}  // namespace heed::cli
