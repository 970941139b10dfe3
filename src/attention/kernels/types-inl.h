// The panels and tables of the kernels for the numbers for which a file is compiled.
#if defined(HEED_TYPES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_TYPES_INL_H_
#undef HEED_TYPES_INL_H_
#else
#define HEED_TYPES_INL_H_
#endif

#include "attention/kernels/kernels.h"
#include "attention/kernels/panel/backward.h"
#include "hwy/highway.h"
#include "simd/reals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

using Tile = BasicTile<Real>;
using Panel = BasicPanel<Real>;
using PanelOptions = BasicPanelOptions<Real>;
using PanelState = BasicPanelState<Real>;
using PanelSums = BasicPanelSums<Real>;
using PanelLogSums = BasicPanelLogSums<Real>;
using PanelLargest = BasicPanelLargest<Real>;
using DropoutRows = BasicDropoutRows<Real>;
using ScoreTile = detail::BasicScoreTile<Real>;
using WeightTile = BasicWeightTile<Real>;
using KernelTable = BasicKernelTable<Real>;
using FactoredRows = BasicFactoredRows<Real>;
using RowVectors = BasicRowVectors<Real>;
using RowLse = BasicRowLse<Real>;
using Matrix = BasicMatrix<Real>;
using KeptTile = BasicKeptTile<Real>;
using KeySums = BasicKeySums<Real>;
using SumRows = BasicSumRows<Real>;
using BackwardTable = BasicBackwardTable<Real>;

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_TYPES_INL_H_
