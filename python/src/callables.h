// Masks and score modifications written in Python.
//
// The function is called with NumPy arrays for a whole tile of scores, by any thread that holds the
// GIL. If it raises, the computation stops, and the call that it belongs to raises the exception.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "heed/attention/mask.h"
#include "heed/attention/score_mod.h"

namespace heed::python {

namespace nb = nanobind;

// The functions that a Python object refers to, as references and as borrowed handles.
using Functions = std::vector<nb::object>;
using FunctionHandles = std::vector<nb::handle>;

// visible(b, h, q_idx, kv_idx) -> booleans. The mask does not own the function: the owner of the
// mask owns the function too, so that the garbage collector sees each reference.
Mask mask_where(nb::handle visible);

// function(score, b, h, q_idx, kv_idx) -> scores; it is not owned either. A function may have a
// derivative: a method differentiate() with the same arguments, which returns the new scores and
// their derivatives with respect to the old ones. It may also have a method learn(gradients of
// scores, query_offset, b, h, q_idx, kv_idx), which the backward pass calls for each tile.
ScoreMod score_mod_of(nb::handle function);
bool has_derivative(nb::handle function);

// Visits the references of an object of type T, listed by functions(), for the garbage collector.
// These objects never change, so that every cycle has another link that can be cut, as with tuples.
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
