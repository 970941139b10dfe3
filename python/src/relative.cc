// The mapping from distances to the entries of a learned table.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>

#include "bindings.h"
#include "heed/attention/relative_position.h"

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

}  // namespace heed::python
