// model.safetensors.index.json: which file of a folder holds which tensor.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace models {

// The file of each tensor, a plain file name, from the member "weight_map" of the text. Throws
// FormatError, which names `file`, when there is no such member, it is no object of strings, names
// a tensor twice, or names a file that lies elsewhere than in the folder.
HEED_API std::map<std::string, std::string> parse_checkpoint_index(std::string_view text,
                                                                   const std::string& file);

}}}  // namespace heed::v0::models
