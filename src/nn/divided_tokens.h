// What layers ask of the division of tokens that they may compute under.
#pragma once

#include <cstdint>
#include <string>

#include "heed/nn/context_parallel.h"

namespace heed { inline namespace v0 { namespace nn {

// Throws InvalidArgument, naming `function`, where tokens are divided.
void refuse_divided(const std::string& function);

// The length of the sequence of which a layer was given so many tokens: all, or this rank's.
// Throws InvalidArgument, naming `function`, where these are not as many as the rank has.
std::int64_t length_of_sequence(const std::string& function, std::int64_t num_tokens);

}}}  // namespace heed::v0::nn
