// What a processor does best where its instruction set does not tell.
#pragma once

namespace heed::inline v0::kernels {

// Whether memory that lies in one stretch is read fastest from its first byte to its last, with few
// lines asked for before. AMD's processors do so: docs/performance.md has the figures.
bool reads_stretches_best();

// Whether pairs of bfloat16, where they can be multiplied at all, are multiplied faster than as
// many floats: on a Zen 4 they take half the time, on an Intel of model 207 all of it. Arm's cores
// begin a BFDOT as often as a multiply-add of floats: so says LLVM's model of a Neoverse N2.
bool multiplies_bfloat16_faster();

}  // namespace heed::inline v0::kernels
