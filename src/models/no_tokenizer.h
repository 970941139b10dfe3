// The substitute for a missing tokenizer.
#pragma once

#include <memory>
#include <string>

#include "heed/text/tokenizer.h"

namespace heed { inline namespace v0 { namespace models {

// Encoding throws InvalidArgument, which names the folder and says what to do. The label of an id
// is its number, and it decodes to nothing.
std::unique_ptr<const text::Tokenizer> no_tokenizer(std::string folder);

}}}  // namespace heed::v0::models
