// What `heed bench` prints, whatever it measured.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/outcome.h"

namespace heed::cli {

// One object: "machine" says on what, "results" holds one object for each outcome. Peaks, and what
// counts as quiet, are judged by the best of all probes with equal threads.
nlohmann::ordered_json to_json(const std::vector<Outcome>& outcomes);

// The same object as text: a table, and above it what all cases have in common.
std::string to_table(const nlohmann::ordered_json& report);

// What the two consist of, for who measures something else: the best of all probes by the number of
// threads, "machine", the line that names it, and rows of cells as text in columns.
std::map<int, Probe> best_probes(const std::vector<Outcome>& outcomes);
nlohmann::ordered_json machine();
std::string headline(const nlohmann::ordered_json& machine);
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace heed::cli
