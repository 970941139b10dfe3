// What a misspelt name was most likely meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed { inline namespace v0 { namespace detail {

// The one of `names` from which `name` differs in fewest characters (Levenshtein's distance:
// changed, inserted or removed), if these are at most a third of it; empty where there is none.
std::string_view closest_name(std::string_view name, const std::vector<std::string_view>& names);

// "; did you mean 'causal'?", or nothing where no name is close: the end of a message.
std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& names);

}}}  // namespace heed::v0::detail
