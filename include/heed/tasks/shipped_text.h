/// A training text that is part of the library.
#pragma once

#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace tasks {

/// A short story in English, written for heed: some thousand characters, enough for a model of some
/// ten thousand parameters to learn words.
HEED_API std::string_view shipped_text();

}}}  // namespace heed::v0::tasks
