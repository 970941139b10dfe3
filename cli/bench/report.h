// The output of all verbs of `heed bench`.
#pragma once

#include <CLI/App.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/baseline.h"
#include "bench/outcome.h"
#include "heed/core/function_ref.h"

namespace heed::cli {

struct ReportOptions {
  bool as_json = false;
  std::string baseline;  // a file, or empty
};

// Adds --json and --baseline.
void add_report_options(CLI::App& verb, ReportOptions& options);

// Prints the report of a verb. Construct it before measuring, so that an error in the baseline is
// reported at once.
class ReportPrinter {
 public:
  // `number` names the number of each result that is compared with a baseline. Throws what Baseline
  // throws.
  ReportPrinter(const ReportOptions& options, std::string verb, std::string number = "median_ms");

  // `report` has "results", each with its "case" and numbers, and "machine" where that matters.
  // "verb" and the comparison with the baseline are added. `to_table` is called unless JSON is
  // wanted.
  void print(const nlohmann::ordered_json& report,
             FunctionRef<std::string(const nlohmann::ordered_json&)> to_table) const;

 private:
  bool as_json_;
  std::string verb_;
  std::optional<Baseline> baseline_;
};

// Returns one object: "machine" describes the machine, "results" holds one object per outcome.
// Peaks and quiet repetitions are judged by all probes with the same number of threads. With
// samples, each result has all its repetitions: [at, elapsed, seconds per call, attention calls per
// second and read seconds before, the same after, share of waiting, undisturbed attention calls per
// second while the machine settled].
enum class Samples { kLeftOut, kIncluded };
nlohmann::ordered_json to_json(const std::vector<Outcome>& outcomes,
                               Samples samples = Samples::kLeftOut);

// Returns the same object as text: a table, and above it the values that all cases share.
std::string to_table(const nlohmann::ordered_json& report);

// The parts of both functions, for other measurements: the undisturbed rates by number of threads;
// a count of quiet repetitions for a table, "3/10"; the note below the table where a count is 0;
// the object "machine" and its line of text; and rows of cells as aligned text.
std::map<int, Rates> undisturbed_by_threads(const std::vector<Outcome>& outcomes);
std::string quiet_cell(const nlohmann::ordered_json& result);
std::string quiet_note(const nlohmann::ordered_json& report);
nlohmann::ordered_json machine();
std::string headline(const nlohmann::ordered_json& machine);
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace heed::cli
