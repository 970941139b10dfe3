// By tokens or by heads: what a call divides its work by, and what is sent then.
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

// Bytes that each rank gets from others in a forward pass. Shapes are those of all tokens.
std::vector<std::int64_t> bytes_by_tokens(const AttentionShapes& shapes, int size,
                                          const Readers& readers);
std::vector<std::int64_t> bytes_by_heads(const AttentionShapes& shapes, int size);

// Throws InvalidArgument, with `function` in front, when heads are wanted that do not divide.
Choice choose_division(const char* function, const AttentionShapes& shapes, int size,
                       const Readers& readers, DividedBy wanted);

}}}  // namespace heed::v0::distributed
