// Masks as Python holds them.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "arrays.h"
#include "heed/mask.h"

namespace heed::python {

// A mask and the arrays that it refers to.
struct MaskObject {
  Mask mask;
  std::vector<Array> arrays = {};
};

MaskObject operator&(const MaskObject& a, const MaskObject& b);

void bind_masks(nb::module_& module);

}  // namespace heed::python
