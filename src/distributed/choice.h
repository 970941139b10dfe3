// The choice of dividing a call's work by tokens or by heads, and the bytes that are then sent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "distributed/readers.h"
#include "heed/attention/plan.h"
#include "heed/distributed/attention.h"

namespace heed { inline namespace v0 { namespace distributed {

struct Choice {
  DividedBy by;  // kTokens or kHeads
  std::string reason;
};

// Bytes that each rank receives from others in a forward pass. The shapes are those of all tokens.
std::vector<std::int64_t> bytes_by_tokens(const AttentionShapes& shapes, int size,
                                          const Readers& readers);
std::vector<std::int64_t> bytes_by_heads(const AttentionShapes& shapes, int size);

// Throws InvalidArgument, with `function` in front, if division by heads is wanted but the heads do
// not divide.
Choice choose_division(const char* function, const AttentionShapes& shapes, int size,
                       const Readers& readers, DividedBy wanted);

}}}  // namespace heed::v0::distributed
