// Masks as Python objects.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <variant>
#include <vector>

#include "arrays.h"
#include "callables.h"
#include "heed/attention/mask.h"

namespace heed::python {

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
