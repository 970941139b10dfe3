// The division of tokens among ranks, as layers use it.
#pragma once

#include <cstdint>
#include <string>

#include "heed/nn/context_parallel.h"

namespace heed { inline namespace v0 { namespace nn {

// Throws InvalidArgument, naming `function`, if tokens are divided.
void refuse_divided(const std::string& function);

// The length of the whole sequence, given the number of tokens of a layer's input: all tokens, or
// this rank's. Throws InvalidArgument, naming `function`, if the rank has another number of tokens.
std::int64_t length_of_sequence(const std::string& function, std::int64_t num_tokens);

}}}  // namespace heed::v0::nn
