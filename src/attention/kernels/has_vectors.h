// Whether the instruction set of this pass of hwy/foreach_target.h has vectors. Where there is
// none, the reference computes. Such passes come last, so that no file is left out between two that
// include it.
#pragma once

#define HEED_HAS_VECTORS (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)
