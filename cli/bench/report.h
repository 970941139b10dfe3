// What `heed bench` prints, whatever it measured.
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
  std::string baseline;  // a file; empty: none
};

// Adds --json and --baseline.
void add_report_options(CLI::App& verb, ReportOptions& options);

// Prints what a verb found. It is made before anything is measured: what is wrong with the baseline
// is said at once.
class ReportPrinter {
 public:
  // `number` is what is compared with a baseline, of each result. Throws what Baseline throws.
  ReportPrinter(const ReportOptions& options, std::string verb, std::string number = "median_ms");

  // `report` has "machine", where that matters, and "results", each with its "case" and numbers;
  // "verb" and what comes of the baseline are added to it. `to_table` is called unless JSON is
  // wanted.
  void print(const nlohmann::ordered_json& report,
             FunctionRef<std::string(const nlohmann::ordered_json&)> to_table) const;

 private:
  bool as_json_;
  std::string verb_;
  std::optional<Baseline> baseline_;
};

// One object: "machine" says on what, "results" holds one object for each outcome. Peaks, and what
// counts as quiet, are judged by all probes with equal threads. With samples, each result has all
// its repetitions: [at, elapsed, seconds of a call, calls of attention a second and read before,
// the same after, share of waiting, undisturbed calls while the machine settled].
enum class Samples { kLeftOut, kIncluded };
nlohmann::ordered_json to_json(const std::vector<Outcome>& outcomes,
                               Samples samples = Samples::kLeftOut);

// The same object as text: a table, and above it what all cases have in common.
std::string to_table(const nlohmann::ordered_json& report);

// What the two consist of, for who measures something else: the undisturbed rates by the number
// of threads; a repetition count for a table, "3/10"; what is said below it where a count is 0;
// "machine", the line that names it, and rows of cells as text in columns.
std::map<int, Rates> undisturbed_by_threads(const std::vector<Outcome>& outcomes);
std::string quiet_cell(const nlohmann::ordered_json& result);
std::string quiet_note(const nlohmann::ordered_json& report);
nlohmann::ordered_json machine();
std::string headline(const nlohmann::ordered_json& machine);
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace heed::cli
