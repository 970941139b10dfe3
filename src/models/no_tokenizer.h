// What stands for a tokenizer where there is none.
#pragma once

#include <memory>
#include <string>

#include "heed/text/tokenizer.h"

namespace heed { inline namespace v0 { namespace models {

// Encodes no text: it throws InvalidArgument, which names the folder and says what to do. An id is
// its own label and decodes to nothing.
std::unique_ptr<const text::Tokenizer> no_tokenizer(std::string folder);

}}}  // namespace heed::v0::models
