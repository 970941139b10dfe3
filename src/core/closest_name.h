// Suggestions for misspelt names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed { inline namespace v0 { namespace detail {

// The one of `names` with the smallest Levenshtein distance to `name` (characters changed, inserted
// or removed), if that is at most a third of its length; otherwise empty.
std::string_view closest_name(std::string_view name, const std::vector<std::string_view>& names);

// The end of a message: "; did you mean 'causal'?", or nothing if no name is close.
std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& names);

}}}  // namespace heed::v0::detail
