// The measurements of `heed bench`, for heed.bench.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <utility>
#include <vector>

#include "bench/measurement.h"
#include "bench/peak.h"
#include "bindings.h"

namespace heed::python {

namespace nb = nanobind;

namespace {

using Measured = std::pair<std::vector<double>, std::vector<double>>;

}  // namespace

void bind_bench(nb::module_& module) {
  module.def(
      "time_in_turn",
      [](const std::vector<nb::callable>& calls, int threads, int repetitions, double seconds,
         double rest) {
        std::vector<std::function<void()>> functions;
        for (const nb::callable& call : calls) functions.emplace_back([&call] { call(); });
        std::vector<FunctionRef<void()>> references(functions.begin(), functions.end());
        const auto made = cli::time_in_turn({.threads = threads,
                                             .repetitions = repetitions,
                                             .seconds_per_repetition = seconds,
                                             .begins_untimed = true,
                                             .rest = rest},
                                            references, [](int /*repetition*/) {});
        std::vector<Measured> measured;
        for (const cli::Repetitions& of_call : made) {
          measured.emplace_back(of_call.seconds, of_call.busy_threads);
        }
        return measured;
      },
      nb::arg("calls"), nb::arg("threads"), nb::arg("repetitions"), nb::arg("seconds"),
      nb::arg("rest"),
      "For each of the calls, which take turns: the seconds of a call in each repetition, and how "
      "many processors were busy. A repetition is as many calls as fill `seconds`, after `rest` "
      "seconds of rest.");
  module.def("peak_rate", &cli::peak_rate, nb::arg("threads"),
             "Operations a second of multiply-adds, of all threads, while nothing disturbs.");
}

}  // namespace heed::python
