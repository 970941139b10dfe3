// The division of tokens among ranks, and the resulting work and messages.
#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/plan.h"
#include "operands.h"
#include "options.h"
#include "ranks.h"
#include "readers.h"

namespace heed::python {

namespace {

using distributed::DivisionPlan;

// A TokenDivision with the number of ranks.
struct Division {
  distributed::TokenDivision tokens;
  int size;
};

void check_among(const char* what, std::int64_t found, std::int64_t count) {
  if (found >= 0 && found < count) return;
  throw InvalidArgument(fmt::format("{} is {}, expected 0 to {}", what, found, count - 1));
}

nb::object positions(const Division& self, int rank) {
  check_among("TokenDivision.positions: rank", rank, self.size);
  const distributed::TokenDivision& division = self.tokens;
  auto places = Tensor<std::int64_t>::uninitialized({division.num_tokens(rank)});
  std::int64_t row = 0;
  for (std::int64_t& place : places.elements()) place = division.token(rank, row++);
  return to_object(std::move(places), Library::kNumpy);
}

std::string plan_text(const DivisionPlan& plan) {
  std::ostringstream text;
  text << plan;
  std::string lines = text.str();
  if (!lines.empty()) lines.pop_back();  // print() adds the last one
  return lines;
}

DivisionPlan division_plan(nb::handle query, nb::handle key, nb::handle value, int size,
                           const std::string& dtype, const Options& options,
                           const std::string& divided_by) {
  constexpr const char* kFunction = "distributed::plan";
  const AttentionShapes shapes = planned_shapes(kFunction, query, key, value, dtype);
  const CallOptions<float> call(kFunction, options);
  const distributed::DividedBy by = divided_by_named(divided_by);
  return without_lock([&] { return distributed::plan(shapes, size, *call, by); });
}

void bind_token_division(nb::module_& module) {
  nb::class_<Division>(module, "TokenDivision",
                       "How the tokens of a sequence are dealt out to ranks: in segments of 1024, "
                       "to ranks 0, 1, ... size - 1 and back.")
      .def(
          "__init__",
          [](Division* self, nb::handle length, nb::handle size) {
            const auto tokens = read_as<std::int64_t>("TokenDivision", "length", length);
            const auto ranks = read_as<int>("TokenDivision", "size", size);
            new (self) Division{distributed::TokenDivision(tokens, ranks), ranks};
          },
          nb::arg("length").none(), nb::arg("size").none())
      .def_ro_static("SEGMENT", &distributed::TokenDivision::kSegment,
                     "How many tokens a segment has.")
      .def_prop_ro("length", [](const Division& self) { return self.tokens.length(); })
      .def_ro("size", &Division::size, "How many ranks there are.")
      .def_prop_ro("num_segments", [](const Division& self) { return self.tokens.num_segments(); })
      .def(
          "owner",
          [](const Division& self, std::int64_t segment) {
            check_among("TokenDivision.owner: segment", segment, self.tokens.num_segments());
            return self.tokens.owner(segment);
          },
          nb::arg("segment"), "The rank that has a segment.")
      .def(
          "tokens",
          [](const Division& self, std::int64_t segment) {
            check_among("TokenDivision.tokens: segment", segment, self.tokens.num_segments());
            const RowRange range = self.tokens.tokens(segment);
            return std::pair(range.begin, range.end);
          },
          nb::arg("segment"), "The places of a segment in the sequence, (begin, end).")
      .def(
          "num_tokens",
          [](const Division& self, int rank) {
            check_among("TokenDivision.num_tokens: rank", rank, self.size);
            return self.tokens.num_tokens(rank);
          },
          nb::arg("rank"), "How many tokens a rank has.")
      .def("positions", &positions, nb::arg("rank"),
           "The places of a rank's tokens in the sequence, int64 [num_tokens(rank)], in their "
           "order.");
}

void bind_division_plan(nb::module_& module) {
  const auto checked = [](const DivisionPlan& plan, const char* what, int rank) {
    check_among(what, rank, plan.size);
    return rank;
  };
  nb::class_<DivisionPlan>(module, "DivisionPlan",
                           "Who computes how much of a call, and what is sent for it.")
      .def("__str__", &plan_text)
      .def("__repr__", &plan_text)
      .def_ro("size", &DivisionPlan::size, "How many ranks there are.")
      .def_prop_ro(
          "divided_by",
          [](const DivisionPlan& self) { return std::string(to_string(self.divided_by)); },
          "'tokens' or 'heads'.")
      .def_ro("reason", &DivisionPlan::reason, "Why it is divided so.")
      .def_ro("segment_bytes", &DivisionPlan::segment_bytes,
              "Keys and values of a whole segment, as they are sent.")
      .def_prop_ro("balance", &DivisionPlan::balance,
                   "Work of an average rank / work of the busiest.")
      .def_prop_ro("most_bytes_received", &DivisionPlan::most_bytes_received,
                   "Those of the rank that gets most.")
      .def(
          "pairs",
          [checked](const DivisionPlan& self, int rank) {
            return self.pairs_of(checked(self, "DivisionPlan.pairs: rank", rank));
          },
          nb::arg("rank"),
          "Pairs of a query of the rank and a key that are computed, over all heads.")
      .def(
          "bytes_received",
          [checked](const DivisionPlan& self, int rank) {
            checked(self, "DivisionPlan.bytes_received: rank", rank);
            return self.received[static_cast<std::size_t>(rank)];
          },
          nb::arg("rank"), "Bytes that a rank gets from others.");
  module.def("division_plan", &division_plan, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::arg("size"), nb::arg("dtype"), nb::arg("options"),
             nb::arg("divided_by"));
}

}  // namespace

void bind_division(nb::module_& module) {
  bind_token_division(module);
  bind_division_plan(module);
}

}  // namespace heed::python
