/// Parses masks from text.
#pragma once

#include <string_view>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// The mask that a text describes, in the syntax of Mask::description():
///
///     mask      = all { "|" all }
///     all       = one { "&" one }
///     one       = "none" | "(" mask ")" | name [ "(" [ argument { "," argument } ] ")" ]
///     argument  = number | "unbounded" | alignment | …
///     alignment = "square" | "top_left" | "bottom_right" | "bottom_right" "(" numbers ")"
///               | "offset" "(" number ")"
///
/// & binds tighter than |, and spaces between words have no meaning. The names and their
/// arguments are those of the functions of heed/attention/mask.h; an alignment may follow the
/// arguments: "causal", "sliding_window(4, unbounded, bottom_right)", "strided(8)", "tree(-1, 0,
/// 0)". mask_syntax() lists them all.
///
/// parse_mask(m.description()) is equal to m and has its description, for every mask made of
/// numbers. A mask made of a tensor, a layout of blocks or a function cannot be written as text.
/// @throws InvalidArgument with the text and a caret below the first wrong character. The text may
/// have up to a mebibyte, 1000 named masks and 64 nested parentheses.
HEED_API Mask parse_mask(std::string_view text);

/// The syntax of one mask, for help texts: its name, "sliding_window", its arguments, "(LEFT,
/// RIGHT)", and the keys that a query sees. An alignment may follow the arguments of masks that
/// depend on positions.
struct MaskSyntax {
  std::string_view name;
  std::string_view arguments;
  std::string_view shows;
};

/// Every mask that parse_mask() knows by name.
HEED_API std::vector<MaskSyntax> mask_syntax();

}}  // namespace heed::v0
