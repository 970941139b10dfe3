// Masks and modifications of scores written in Python.
//
// The function is called with NumPy arrays for a whole tile of scores, by any thread that gets the
// interpreter's lock. What it raises stops the call that it is computed for, which raises it.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "heed/attention/mask.h"
#include "heed/attention/score_mod.h"

namespace heed::python {

namespace nb = nanobind;

// The functions that an object of Python's refers to, and a look at them.
using Functions = std::vector<nb::object>;
using FunctionHandles = std::vector<nb::handle>;

// visible(b, h, q_idx, kv_idx) -> booleans. The mask does not own the function: whoever holds the
// mask holds the function too, so that the collector of cycles sees each reference.
Mask mask_where(nb::handle visible);

// function(score, b, h, q_idx, kv_idx) -> scores; it is not owned either. A function may have a
// derivative: a method differentiate() of the same arguments, which returns the scores and their
// derivatives with respect to what they were. It may have a method learn(gradients of scores,
// query_offset, b, h, q_idx, kv_idx) too, which the backward pass calls for each tile.
ScoreMod score_mod_of(nb::handle function);
bool has_derivative(nb::handle function);

// What the collector of cycles asks objects of type T, whose functions() says what they refer to.
// Such objects never change, so that every cycle has another link to be cut at, as with tuples.
template <class T>
int visit_functions(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::handle function : nb::inst_ptr<T>(self)->functions()) Py_VISIT(function.ptr());
  return 0;
}

template <class T>
inline PyType_Slot collected_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&visit_functions<T>)}, {0, nullptr}};

}  // namespace heed::python
