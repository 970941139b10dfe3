// The output of all verbs of `heed bench`.
#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/outcome.h"
#include "bench/statistics.h"
#include "heed/core/function_ref.h"

namespace heed::cli {

// Adds --json.
void add_report_options(CLI::App& verb, bool& as_json);

// Prints the report of a verb. `report` has "results", each with its "case" and numbers, and
// "machine" where that matters; "verb" is added. `to_table` is called unless JSON is wanted.
void print_report(bool as_json, const std::string& verb, const nlohmann::ordered_json& report,
                  FunctionRef<std::string(const nlohmann::ordered_json&)> to_table);

// Returns one object: "machine" describes the machine, "results" holds one object per outcome.
nlohmann::ordered_json to_json(const std::vector<Outcome>& outcomes);

// Returns the same object as text: a table, and above it the values that all cases share.
std::string to_table(const nlohmann::ordered_json& report);

// Returns a table of the results' cases, with the values that all share above it, and for each
// result the cells of `cells_of` under `names`.
std::string case_table(
    const nlohmann::ordered_json& report, const std::vector<std::string>& names,
    FunctionRef<std::vector<std::string>(const nlohmann::ordered_json&)> cells_of);

// Parts of these functions, for other measurements. times_json() returns "median_ms", "best_ms",
// "quartiles_ms" and "repetitions"; spread_cell() half the distance of those quartiles, or of
// others, a column "spread"; machine() the object "machine" and headline() its line of text;
// aligned() rows of cells as text.
nlohmann::ordered_json times_json(const Timing& timing);
std::string spread_cell(const nlohmann::ordered_json& result, const char* name = "quartiles_ms");
nlohmann::ordered_json machine();
std::string headline(const nlohmann::ordered_json& machine);
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace heed::cli
