// What was measured of layers, for a reader and for a program.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "diagnose/measured_layer.h"

namespace heed::cli {

// A table of the heads.
std::string table_of(const AttentionDiagnostics& diagnostics);

// The findings: what was measured and, once for each kind, what it means and what to try. A line
// where there is none.
std::string text_of(const std::vector<Finding>& findings);

// Name, table, similarity and findings.
std::string text_of(const MeasuredLayer& layer);

nlohmann::json to_json(const AttentionDiagnostics& diagnostics);
nlohmann::json to_json(const MeasuredLayer& layer);

}  // namespace heed::cli
