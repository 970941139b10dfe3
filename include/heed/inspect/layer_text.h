/// What was measured of layers, for a reader and for a program.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/diagnostics.h"
#include "heed/core/config.h"
#include "heed/inspect/layers.h"

namespace heed { inline namespace v0 { namespace inspect {

/// A table of the heads, a line each, of at most 100 columns.
HEED_API std::string table_of(const AttentionDiagnostics& diagnostics);

/// The findings: what was measured and, once for each kind, what it means and what to try. A line
/// where there is none.
HEED_API std::string text_of(const std::vector<Finding>& findings);

/// Name, table, similarity and findings.
HEED_API std::string text_of(const MeasuredLayer& layer);

/// A JSON object with the measures of each head ("heads"), their similarity, its mean and the
/// findings. What is not finite becomes null.
HEED_API std::string json_of(const AttentionDiagnostics& diagnostics);

}}}  // namespace heed::v0::inspect
