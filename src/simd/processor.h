// What a processor does best where its instruction set does not tell.
#pragma once

#include <cstdint>

namespace heed { inline namespace v0 { namespace kernels {

// The targets of Highway that this processor has, as bits: the baseline, which Highway may hold to
// need what some processors lack, among them.
std::int64_t supported_targets();

// How memory that lies in one stretch is read fastest. docs/engineering-log.md has the figures.
enum class Stretches : std::uint8_t {
  kGroupsInTurn,   // several streams side by side, whose lines are fetched before
  kInOrder,        // from the first byte to the last, with few lines fetched: AMD's
  kInOrderFetched  // the same, with numbers of 8 and 16 bits fetched farther on: from Zen 5 on
};
Stretches best_reading_of_stretches();

// Whether pairs of bfloat16, where they can be multiplied at all, are multiplied faster than as
// many floats: on a Zen 4 they take half the time, on an Intel of model 207 all of it. Arm's cores
// begin a BFDOT as often as a multiply-add of floats: so says LLVM's model of a Neoverse N2.
bool multiplies_bfloat16_faster();

}}}  // namespace heed::v0::kernels
