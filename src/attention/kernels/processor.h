// What a processor does best where its instruction set does not tell.
#pragma once

namespace heed::inline v0::kernels {

// Whether memory that lies in one stretch is read fastest from its first byte to its last, with few
// lines asked for before. AMD's processors do so: docs/performance.md has the figures.
bool reads_stretches_best();

}  // namespace heed::inline v0::kernels
