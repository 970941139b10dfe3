// Shapes that a plan is made for.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "heed/attention/plan.h"

namespace heed::python {

namespace nb = nanobind;

// Those of arrays, of which only shape, layout and type are looked at, or of tuples of extents,
// whose numbers are of the type that `dtype` names.
// @throws InvalidArgument when there are more than four dimensions, or when it names none.
AttentionShapes planned_shapes(const char* function, nb::handle query, nb::handle key,
                               nb::handle value, const std::string& dtype);

}  // namespace heed::python
