// Positions: rotary embeddings, and the mapping from distances to the entries of a learned table.
#include "heed/attention/rotary.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>

#include "bindings.h"
#include "heed/attention/relative_position.h"
#include "operands.h"
#include "readers.h"

namespace heed::python {

namespace nb = nanobind;

void bind_relative(nb::module_& module) {
  nb::class_<RelativeBuckets>(
      module, "RelativeBuckets",
      "Which entry of a learned table belongs to a distance, kv_idx - q_idx in positions.")
      .def_static("clip", &RelativeBuckets::clip, nb::arg("max_distance"),
                  "An entry for every distance from -max_distance to max_distance; keys further "
                  "away count as the furthest ones (Shaw et al., 2018).")
      .def_static("t5", &RelativeBuckets::t5, nb::arg("num_buckets") = 32,
                  nb::arg("max_distance") = 128, nb::arg("bidirectional") = true,
                  "As T5 has them, with its rounding: exact entries for near keys, then ever wider "
                  "ones up to max_distance and beyond. Bidirectional halves the entries between "
                  "keys before the query (and at it) and those after it; otherwise keys after it "
                  "count as distance 0 (Raffel et al., 2020).")
      .def_prop_ro("count", &RelativeBuckets::count, "How many entries a table has.")
      .def_prop_ro("reach", &RelativeBuckets::reach,
                   "Distances beyond ±reach have the entries of ±reach.")
      .def("__call__", &RelativeBuckets::operator(), nb::arg("distance"),
           "The entry of a distance, at least 0 and below count.")
      .def("__repr__",
           [](const RelativeBuckets& self) {
             return fmt::format("<heed.RelativeBuckets {}>", self.description());
           })
      .def("__str__", &RelativeBuckets::description);
}

namespace {

RotaryPairing pairing_of(const char* function, const std::optional<std::string>& name) {
  if (name == "halves") return RotaryPairing::kHalves;
  if (name == "neighbours") return RotaryPairing::kNeighbours;
  throw InvalidArgument(fmt::format("{}: pairing is {}, expected \"halves\" or \"neighbours\"",
                                    function, name ? '"' + *name + '"' : "not given"));
}

// The common arguments of both passes, and the array that the options refer to.
struct RotaryArguments {
  RotaryPairing pairing;
  std::optional<Array> position_ids;
  RotaryOptions options;

  RotaryArguments(const char* function, const std::optional<std::string>& pairing_name,
                  nb::handle ids, const RotaryOptions& others)
      : pairing(pairing_of(function, pairing_name)), options(others) {
    if (ids.is_none()) return;
    position_ids = to_array(function, "position_ids", ids);
    if (position_ids->dtype() != nb::dtype<std::int64_t>()) {
      throw InvalidArgument(fmt::format("{}: position_ids is {}, expected int64", function,
                                        type_name(*position_ids)));
    }
    options.position_ids = view_of<std::int64_t>(*position_ids);
  }
};

// Calls compute(x, cos, sin) on views.
template <class T, class Compute>
nb::object turned(const char* function, const char* name, nb::handle x, const nb::tuple& caches,
                  Compute compute) {
  using Real = RealOf<T>;
  const Array input = to_array(function, name, x);
  const Numbers<Real> cos(function, "cos", caches[0]);
  const Numbers<Real> sin(function, "sin", caches[1]);
  auto result = without_lock([&] { return compute(view_of<T>(input), *cos, *sin); });
  return to_object(std::move(result), library_of(x));
}

nb::object rotary(nb::handle x, nb::handle cos, nb::handle sin,
                  const std::optional<std::string>& pairing, nb::handle position_ids,
                  std::optional<std::int64_t> rotary_dim, std::int64_t offset,
                  std::optional<std::int64_t> num_heads) {
  constexpr const char* kFunction = "rotary_embedding";
  const RotaryArguments arguments(kFunction, pairing, position_ids,
                                  {rotary_dim, std::nullopt, offset, num_heads});
  const DataType dtype = data_type_of(kFunction, "x", to_array(kFunction, "x", x));
  return with_type(dtype, [&](auto number) {
    return turned<decltype(number)>(
        kFunction, "x", x, nb::make_tuple(cos, sin), [&](const auto&... views) {
          return rotary_embedding(views..., arguments.pairing, arguments.options);
        });
  });
}

nb::object rotary_backward(nb::handle grad_out, nb::handle cos, nb::handle sin,
                           const std::optional<std::string>& pairing, nb::handle position_ids,
                           std::optional<std::int64_t> rotary_dim, std::int64_t offset,
                           std::optional<std::int64_t> num_heads) {
  constexpr const char* kFunction = "rotary_embedding_backward";
  const RotaryArguments arguments(kFunction, pairing, position_ids,
                                  {rotary_dim, std::nullopt, offset, num_heads});
  const DataType dtype =
      data_type_of(kFunction, "grad_out", to_array(kFunction, "grad_out", grad_out));
  return with_real(kFunction, "grad_out", dtype, [&](auto number) {
    return turned<decltype(number)>(
        kFunction, "grad_out", grad_out, nb::make_tuple(cos, sin), [&](const auto&... views) {
          return rotary_embedding_backward(views..., arguments.pairing, arguments.options);
        });
  });
}

}  // namespace

void bind_rotary(nb::module_& module) {
  module.def("rotary_embedding", &rotary, nb::arg("x").none(), nb::arg("cos").none(),
             nb::arg("sin").none(), nb::kw_only(), nb::arg("pairing") = nb::none(),
             nb::arg("position_ids") = nb::none(), nb::arg("rotary_dim") = nb::none(),
             nb::arg("offset") = 0, nb::arg("num_heads") = nb::none(),
             "x [batch, num_heads, length, head_dim], or [batch, length, num_heads * head_dim] "
             "with num_heads, with pairs of its first rotary_dim dimensions turned. pairing has to "
             "be named: \"halves\", "
             "(i, i + rotary_dim / 2), or \"neighbours\", (2i, 2i + 1). cos and sin "
             "are [max_len, rotary_dim / 2], whose rows position_ids (int64 [batch, length]) or "
             "offset choose, or [batch, length, rotary_dim / 2].");
  module.def("rotary_embedding_backward", &rotary_backward, nb::arg("grad_out").none(),
             nb::arg("cos").none(), nb::arg("sin").none(), nb::kw_only(),
             nb::arg("pairing") = nb::none(), nb::arg("position_ids") = nb::none(),
             nb::arg("rotary_dim") = nb::none(), nb::arg("offset") = 0,
             nb::arg("num_heads") = nb::none(),
             "The derivative of a loss with respect to x of rotary_embedding, given grad_out, that "
             "with respect to the result: the rotation back. float32 or float64.");
}

}  // namespace heed::python
