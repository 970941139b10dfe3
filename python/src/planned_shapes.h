// The shapes that a plan is made for.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "heed/attention/plan.h"

namespace heed::python {

namespace nb = nanobind;

// Takes the shapes, layouts and types of arrays, or tuples of extents with the type that `dtype`
// names.
// @throws InvalidArgument if there are more than four dimensions or `dtype` names no type.
AttentionShapes planned_shapes(const char* function, nb::handle query, nb::handle key,
                               nb::handle value, const std::string& dtype);

}  // namespace heed::python
