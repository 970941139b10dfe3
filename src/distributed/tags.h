// What messages between two ranks are about.
#pragma once

namespace heed { inline namespace v0 { namespace distributed {

inline constexpr int kKeysTag = 1;       // keys and values of a segment
inline constexpr int kGradientsTag = 2;  // what a rank adds to their gradients
inline constexpr int kHeadsTag = 3;      // rows of the heads of a rank

// Numbers that are added up: their parts go to the rank that adds them, and the sums to all.
struct SumTags {
  int parts;
  int sums;
};
inline constexpr SumTags kOptionSums{4, 5};     // gradients of what options hold
inline constexpr SumTags kParameterSums{6, 7};  // those of parameters, while others are under way

}}}  // namespace heed::v0::distributed
