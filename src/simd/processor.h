// Properties of a processor that do not follow from its instruction sets.
#pragma once

#include <cstdint>

namespace heed { inline namespace v0 { namespace kernels {

// The targets of Highway that this processor supports, as bits. The baseline is always among them,
// even if Highway defines it to need what some processors lack.
std::int64_t supported_targets();

// The fastest way to read contiguous memory. docs/performance.md has measurements.
enum class Stretches : std::uint8_t {
  kGroupsInTurn,   // several streams side by side, whose lines are prefetched
  kInOrder,        // from the first byte to the last, with few lines prefetched: AMD
  kInOrderFetched  // the same, with numbers of 8 and 16 bits prefetched further on: from Zen 5 on
};
Stretches best_reading_of_stretches();

// True if products of bfloat16 in pairs, where they exist at all, are faster than those of as many
// floats: they take half the time on Zen 4 and the same time on Intel's model 207. Arm's cores
// start a BFDOT as often as a multiply-add of floats, according to LLVM's model of the Neoverse N2.
bool multiplies_bfloat16_faster();

}}}  // namespace heed::v0::kernels
