/// Measurements of layers as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/diagnostics.h"
#include "heed/core/config.h"
#include "heed/inspect/layers.h"

namespace heed { inline namespace v0 { namespace inspect {

/// A table with a line per head, at most 100 columns wide.
HEED_API std::string table_of(const AttentionDiagnostics& diagnostics);

/// The findings: the measurement and, once for each kind, what it means and what to try. One line
/// if there are none.
HEED_API std::string text_of(const std::vector<Finding>& findings);

/// The layer's name, table, similarity and findings.
HEED_API std::string text_of(const MeasuredLayer& layer);

/// A JSON object with the measurements of each head ("heads"), their similarity, its mean and the
/// findings. Numbers that are not finite become null.
HEED_API std::string json_of(const AttentionDiagnostics& diagnostics);

}}}  // namespace heed::v0::inspect
