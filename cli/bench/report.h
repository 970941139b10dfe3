// What `heed bench` prints, whatever it measured.
#pragma once

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

}  // namespace heed::cli
