// Masks as they are written on the command line.
#pragma once

#include <string>
#include <string_view>

#include "heed/attention/mask.h"

namespace heed::cli {

// What parse_mask() accepts, for the help of an option.
inline constexpr std::string_view kMaskHelp =
    "causal, \"causal & sliding_window(2, 0)\" or another that `heed mask --help` lists; & and | "
    "join several";

// Every mask with its arguments and what a query sees under it, a line or two each.
std::string mask_table();

// heed::parse_mask: "causal & sliding_window(2, 0)". Throws UsageError naming the option.
Mask parse_mask(std::string_view option, std::string_view text);

}  // namespace heed::cli
