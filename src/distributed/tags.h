// What messages between two ranks are about.
#pragma once

namespace heed::inline v0::distributed {

inline constexpr int kKeysTag = 1;       // keys and values of a segment
inline constexpr int kGradientsTag = 2;  // what a rank adds to their gradients
inline constexpr int kSumsTag = 3;       // parts of numbers that are added up
inline constexpr int kHeadsTag = 4;      // rows of the heads of a rank

}  // namespace heed::inline v0::distributed
