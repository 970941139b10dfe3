// Masks as Python holds them.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "arrays.h"
#include "callables.h"
#include "heed/mask.h"

namespace heed::python {

// A mask, the arrays that it refers to and the functions that it calls.
struct MaskObject {
  Mask mask;
  std::vector<Array> arrays = {};
  Functions function_objects = {};

  FunctionHandles functions() const { return {function_objects.begin(), function_objects.end()}; }
};

MaskObject operator&(const MaskObject& a, const MaskObject& b);

void bind_masks(nb::module_& module);

}  // namespace heed::python
