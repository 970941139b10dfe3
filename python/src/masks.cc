#include "masks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "call.h"

namespace heed::python {

namespace {

// A combination of two masks, with the references of both.
MaskObject joined(Mask mask, const MaskObject& a, const MaskObject& b) {
  MaskObject both{std::move(mask), a.arrays, a.function_objects};
  both.arrays.insert(both.arrays.end(), b.arrays.begin(), b.arrays.end());
  both.function_objects.insert(both.function_objects.end(), b.function_objects.begin(),
                               b.function_objects.end());
  return both;
}

template <class T>
TensorView<const T> elements_of(const char* function, const Array& array, const char* expected) {
  if (array.dtype() != nb::dtype<T>()) {
    throw InvalidArgument(
        fmt::format("{}: array is {}, expected {}", function, type_name(array), expected));
  }
  return view_of<T>(array);
}

MaskObject allow(nb::handle object, std::optional<std::int64_t> kv_len) {
  Array array = to_array("allow", "array", object);
  const auto view = elements_of<bool>("allow", array, "bool: true = may attend");
  if (kv_len) return {Mask::allow(pad_keys(view, *kv_len))};
  return {Mask::allow(view), {array}};
}

MaskObject block(nb::handle object) {
  Array array = to_array("block", "array", object);
  return {Mask::block(elements_of<bool>("block", array, "bool: true = may not attend")), {array}};
}

MaskObject additive(nb::handle object, std::optional<std::int64_t> kv_len) {
  Array array = to_array("additive", "array", object);
  std::optional<Tensor<float>> copy;
  const FloatView view = as_real("additive", "array", array, copy);
  if (kv_len) return {Mask::additive(pad_keys(view, *kv_len))};
  if (copy) return {Mask::additive(std::move(*copy))};
  return {Mask::additive(view), {array}};
}

MaskObject where(nb::callable visible) {
  Mask mask = mask_where(visible);
  return {.mask = std::move(mask), .function_objects = {std::move(visible)}};
}

MaskObject rows(const std::vector<std::pair<std::int64_t, std::int64_t>>& ranges) {
  std::vector<RowRange> result;
  result.reserve(ranges.size());
  for (const auto& [begin, end] : ranges) result.push_back({begin, end});
  return {Mask::rows(std::move(result))};
}

MaskObject key_padding(nb::handle token_ids, std::int64_t padding_id) {
  const Array array = to_array("key_padding", "token_ids", token_ids);
  return {heed::key_padding(elements_of<std::int64_t>("key_padding", array, "int64"), padding_id)};
}

using ScoreExtents = std::vector<std::int64_t>;

template <class T>
nb::object materialized(Tensor<T> (*materialize)(const Mask&, const ScoreShape&),
                        const MaskObject& self, const ScoreExtents& extents,
                        const QueryOffsets& query_offset) {
  const ScoreShape shape = score_shape(extents, query_offset);
  Tensor<T> tensor = without_lock([&] { return materialize(self.mask, shape); });
  return to_object(std::move(tensor), Library::kNumpy, static_cast<int>(extents.size()));
}

std::string picture(const MaskObject& self, const ScoreExtents& extents,
                    const QueryOffsets& query_offset, std::int64_t batch, std::int64_t head) {
  const ScoreShape shape = score_shape(extents, query_offset);
  return without_lock([&] {
    return fmt::format("{}", fmt::join(to_lines(self.mask, shape, kHashGlyphs, batch, head), "\n"));
  });
}

void bind_mask_class(nb::module_& module) {
  nb::class_<MaskObject>(module, "Mask", nb::type_slots(collected_slots<MaskObject>),
                         "Which keys each query may attend to. Masks are made by name, combine "
                         "with & and |, and print themselves.")
      .def(
          "__init__", [](MaskObject* self) { new (self) MaskObject{}; }, "Everything is visible.")
      .def(
          "__and__",
          [](const MaskObject& a, const MaskObject& b) { return joined(a.mask & b.mask, a, b); },
          nb::is_operator(), "A key is visible when both allow it; what both add is added.")
      .def(
          "__or__",
          [](const MaskObject& a, const MaskObject& b) { return joined(a.mask | b.mask, a, b); },
          nb::is_operator(),
          "A key is visible when either allows it. What adds to scores comes behind: (a | b) & "
          "added.")
      .def("__repr__",
           [](const MaskObject& self) {
             return fmt::format("<heed.Mask {}>", self.mask.description());
           })
      .def("__str__", [](const MaskObject& self) { return self.mask.description(); })
      .def(
          "allow",
          [](const MaskObject& self, const ScoreExtents& shape, const QueryOffsets& query_offset) {
            return materialized(&materialize_allow, self, shape, query_offset);
          },
          nb::arg("shape"), nb::arg("query_offset") = 0,
          "The mask as booleans of the given shape, (q_len, kv_len) or (batch, num_heads, q_len, "
          "kv_len): true = may attend.")
      .def(
          "additive",
          [](const MaskObject& self, const ScoreExtents& shape, const QueryOffsets& query_offset) {
            return materialized(&materialize_additive, self, shape, query_offset);
          },
          nb::arg("shape"), nb::arg("query_offset") = 0,
          "What is added to the scores, float32; -inf = may not attend.")
      .def("picture", &picture, nb::arg("shape"), nb::arg("query_offset") = 0, nb::arg("batch") = 0,
           nb::arg("head") = 0,
           "One line a query, one glyph a key: # is visible, . is not.\n\n"
           ">>> print(heed.causal().picture((3, 3)))\n#..\n##.\n###");
}

}  // namespace

ScoreShape score_shape(const std::vector<std::int64_t>& extents, const QueryOffsets& query_offset) {
  if (extents.size() != 2 && extents.size() != 4) {
    throw InvalidArgument(fmt::format(
        "Mask: shape has {} dimensions, expected (q_len, kv_len) or (batch, num_heads, q_len, "
        "kv_len)",
        extents.size()));
  }
  ScoreShape shape{.q_len = extents[extents.size() - 2],
                   .kv_len = extents[extents.size() - 1],
                   .query_offset = query_offset_of(query_offset)};
  if (extents.size() == 4) {
    shape.batch = extents[0];
    shape.num_heads = extents[1];
  }
  return shape;
}

void bind_masks(nb::module_& module) {
  bind_mask_class(module);
  module.def(
      "allow", &allow, nb::arg("array").none(), nb::kw_only(), nb::arg("kv_len") = nb::none(),
      "true = may attend. The array broadcasts, aligned at the right, to [batch, num_heads, "
      "q_len, kv_len]; the mask refers to its memory. With kv_len it is copied, and keys that it "
      "lacks at the end may not be attended to.");
  module.def("block", &block, nb::arg("array").none(),
             "true = may not attend; otherwise as allow().");
  module.def("additive", &additive, nb::arg("array").none(), nb::kw_only(),
             nb::arg("kv_len") = nb::none(),
             "Values added to the scores; -inf = may not attend. Float32 is referred to, other "
             "types are copied, and so are masks that kv_len makes longer, as in allow().");
  module.def(
      "where", &where, nb::arg("visible"),
      "A key is visible where visible(b, h, q_idx, kv_idx) is true.\n\n"
      "The function is called for a tile of scores at once, with NumPy arrays that broadcast "
      "to [keys, rows]: h and q_idx are int32 [rows], kv_idx int32 [keys, 1], b an int; it "
      "returns booleans that broadcast so too. It is called for any tile, in any order, from "
      "any thread: several times slower than a mask by name.\n\n"
      ">>> heed.where(lambda b, h, q_idx, kv_idx: (q_idx - kv_idx) % 4 == 0)");
  module.def("rows", &rows, nb::arg("ranges"),
             "One range of keys, (begin, end), for each of the q_len queries.");
  module.def(
      "key_lengths",
      [](std::vector<std::int64_t> lengths) {
        return MaskObject{heed::key_lengths(std::move(lengths))};
      },
      nb::arg("lengths"),
      "Sequence b of the batch has lengths[b] keys; the rest is padding that nobody sees.");
  module.def("key_padding", &key_padding, nb::arg("token_ids").none(), nb::arg("padding_id"),
             "Hides the keys whose token is padding_id. token_ids: int64 [batch, kv_len], copied.");
  module.def(
      "documents",
      [](std::vector<std::int64_t> cu_seqlens) {
        return MaskObject{heed::documents(std::move(cu_seqlens))};
      },
      nb::arg("cu_seqlens"),
      "Several sequences packed into one: a query sees the keys of its own document only. "
      "Document i is the positions cu_seqlens[i] <= p < cu_seqlens[i + 1].");
}

}  // namespace heed::python
