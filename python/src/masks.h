// Masks as Python objects, and masks and score modifications written in Python.
//
// A function is called with NumPy arrays for a whole tile of scores, by any thread that holds the
// GIL. If it raises, the computation stops, and the call that it belongs to raises the exception.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <variant>
#include <vector>

#include "arrays.h"
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

// A mask, with the arrays and functions that it refers to.
struct MaskObject {
  Mask mask;
  std::vector<Array> arrays = {};
  Functions function_objects = {};

  FunctionHandles functions() const { return {function_objects.begin(), function_objects.end()}; }
};

// A query_offset: one number, or one for each batch entry.
using QueryOffsets = std::variant<std::int64_t, std::vector<std::int64_t>>;
inline QueryOffset query_offset_of(const QueryOffsets& offsets) {
  return std::visit([](const auto& given) { return QueryOffset(given); }, offsets);
}

// The shape of scores for which a mask is shown: (q_len, kv_len) or (batch, num_heads, q_len,
// kv_len).
ScoreShape score_shape(const std::vector<std::int64_t>& extents, const QueryOffsets& query_offset);

void bind_masks(nb::module_& module);
// Masks that depend on the positions of queries.
void bind_patterns(nb::module_& module);
// Masks of blocks, and masks read from text.
void bind_blocks(nb::module_& module);

}  // namespace heed::python
