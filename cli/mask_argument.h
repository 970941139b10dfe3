// Masks as they are written on the command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/mask.h"

namespace heed::cli {

// What parse_mask accepts, for help texts.
inline constexpr std::string_view kMaskNames =
    "none, causal, sliding_window(LEFT, RIGHT), prefix(LENGTH) or another mask by name; & and | "
    "join several";

// The two sides of a sliding window.
struct WindowSides {
  std::int64_t left = kUnbounded;
  std::int64_t right = kUnbounded;
};

// "LEFT,RIGHT": each a number from 0, or "unbounded" (or "inf"). `option` is what messages name.
// Throws UsageError.
WindowSides parse_window(std::string_view option, std::string_view sides);

// What --causal may be.
inline const std::vector<std::string> kAlignmentNames{"top-left", "bottom-right", "square"};

// One of kAlignmentNames; square for an empty name: a window without --causal stands where the
// lengths are equal.
Alignment parse_alignment(std::string_view name);

// What --causal and --window say together, each empty where it is not given. Throws UsageError.
Mask parse_causal_and_window(std::string_view causal, std::string_view window);

// heed::parse_mask: "causal & sliding_window(2, 0)". Throws UsageError naming the option.
Mask parse_mask(std::string_view option, std::string_view text);

}  // namespace heed::cli
