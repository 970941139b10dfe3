/// Products and sums that are rounded once.
#pragma once

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// a · b + c, rounded once: std::fma, which not every C library rounds so (that of mingw-w64 10
/// does not).
double multiply_add(double a, double b, double c);
float multiply_add(float a, float b, float c);

}}  // namespace heed::v0
