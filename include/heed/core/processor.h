/// Capabilities of the processor.
#pragma once

#include <string>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// The vector instruction sets of this processor that attention can use, best first, e.g.
/// {"AVX-512", "AVX2", "SSE4"} or {"NEON"}; empty where there is none that heed knows.
HEED_API std::vector<std::string> supported_instruction_sets();

}}  // namespace heed::v0
