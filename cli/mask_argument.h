// Parses masks on the command line.
#pragma once

#include <string>
#include <string_view>

#include "heed/attention/mask.h"

namespace heed::cli {

// Describes what parse_mask() accepts, for the help of an option.
inline constexpr std::string_view kMaskHelp =
    "causal, \"causal & sliding_window(2, 0)\" or another that `heed mask --help` lists; & and | "
    "join several";

// Returns a table of every mask: its arguments and what a query sees, one or two lines each.
std::string mask_table();

// Calls heed::parse_mask, for example with "causal & sliding_window(2, 0)". Throws UsageError that
// names the option.
Mask parse_mask(std::string_view option, std::string_view text);

}  // namespace heed::cli
