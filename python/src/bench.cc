// The probes of `heed bench` and its rule for quiet repetitions, for heed.bench.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/probe.h"
#include "bench/statistics.h"
#include "bench/waiting.h"
#include "bindings.h"

namespace heed::python {

namespace nb = nanobind;

namespace {

using Released = nb::call_guard<nb::gil_scoped_release>;

// seconds; of the probes before and after: multiply-adds and calls per second, seconds of the read;
// share of waiting; multiply-adds and calls per second while the machine settled
using Row = std::array<double, 10>;

std::vector<cli::Repetition> repetitions_of(const std::vector<Row>& rows) {
  std::vector<cli::Repetition> repetitions;
  repetitions.reserve(rows.size());
  for (const Row& row : rows) {
    repetitions.push_back({.seconds = row[0],
                           .before = {{row[1], row[2]}, row[3]},
                           .after = {{row[4], row[5]}, row[6]},
                           .waiting_share = row[7],
                           .settled = {row[8], row[9]}});
  }
  return repetitions;
}

}  // namespace

void bind_bench(nb::module_& module) {
  module.def(
      "probe_machine",
      [](int threads) {
        const cli::Probe probe = cli::probe_machine(threads);
        return std::tuple(probe.rates.fma, probe.rates.attention, probe.read_seconds);
      },
      nb::arg("threads"), Released(),
      "What the machine can do just now: multiply-adds and small calls of attention a second, of "
      "all "
      "threads, and seconds to read 1 MiB.");
  module.def(
      "settle_machine",
      [](int threads) {
        const cli::Rates rates = cli::settle_machine(threads);
        return std::pair(rates.fma, rates.attention);
      },
      nb::arg("threads"), Released(), "Probes it for a while; the undisturbed rates.");
  module.def(
      "waiting_so_far",
      [] {
        const cli::Waiting waiting = cli::waiting_so_far();
        return std::pair(waiting.seconds, waiting.turns);
      },
      "Seconds that the process's threads waited for a processor, and how often one was given.");
  module.def(
      "waited",
      [](std::pair<double, double> before, std::pair<double, double> after) {
        return cli::waited({before.first, before.second}, {after.first, after.second});
      },
      nb::arg("before"), nb::arg("after"), "The seconds of it that others are to blame for.");
  module.def(
      "undisturbed_rates",
      [](const std::vector<Row>& rows) {
        const cli::Rates rates = cli::undisturbed_rates(repetitions_of(rows));
        return std::pair(rates.fma, rates.attention);
      },
      nb::arg("repetitions"),
      "Multiply-adds and calls a second while nothing disturbs. A repetition is (seconds, *probe "
      "before, *probe after, share of waiting, *settled rates).");
  module.def(
      "are_quiet",
      [](const std::vector<Row>& rows, std::pair<double, double> rates) {
        return cli::are_quiet(repetitions_of(rows), {rates.first, rates.second});
      },
      nb::arg("repetitions"), nb::arg("undisturbed"), "Which repetitions are quiet.");
}

}  // namespace heed::python
