// The texts that models read, and their form as model inputs.
#pragma once

#include <string_view>

#include "heed/inspect/model_heads.h"

namespace heed { inline namespace v0 { namespace inspect {

// An encoded text, or pair of texts, with the properties of its tokens that patterns use, and
// labels.
ModelText text_of(const text::Tokenizer& tokenizer, text::Encoding encoding, std::string_view first,
                  std::string_view second = {});

models::Inputs inputs_of(const ModelText& text);

}}}  // namespace heed::v0::inspect
