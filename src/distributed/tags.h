// The tags of messages between two ranks.
#pragma once

namespace heed { inline namespace v0 { namespace distributed {

inline constexpr int kKeysTag = 1;       // keys and values of a segment
inline constexpr int kGradientsTag = 2;  // a rank's contribution to their gradients
inline constexpr int kHeadsTag = 3;      // rows of a rank's heads

// The tags of a sum over ranks: of parts sent to the rank that sums them, and of sums sent to all.
struct SumTags {
  int parts;
  int sums;
};
inline constexpr SumTags kOptionSums{4, 5};  // gradients of the tensors in options
// gradients of parameters, while other sums are in transit
inline constexpr SumTags kParameterSums{6, 7};

}}}  // namespace heed::v0::distributed
