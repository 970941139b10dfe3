// The kernels that multiply bfloat16 in AMX tiles: those of AVX-512, compiled once more with
// AVX512_BF16 and AMX_BF16. Highway has targets for neither.
#define HEED_OF_BFLOAT16
#define HEED_OF_TILES
#define HEED_TARGETS HWY_AVX3
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/amx/tiles.cc"
#include "simd/targets.h"
// simd/targets.h must come first: it sets the targets of foreach_target.h.
#include "hwy/foreach_target.h"
// foreach_target.h must come before other headers: it includes this file once for AVX-512, its only
// target.
#include "attention/kernels/amx/tiles.h"
#include "attention/kernels/bfloat16/bfloat16.h"
#include "attention/kernels/kernels.h"
#include "core/platform.h"
#include "hwy/highway.h"

#if HWY_TARGET == HWY_AVX3
#include <cpuid.h>

#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512bf16,amx-tile,amx-bf16"

#include "attention/kernels/decode/attend_rows-inl.h"
#include "attention/kernels/panel/attend-inl.h"
#include "attention/kernels/panel/backward_table-inl.h"
#include "attention/kernels/panel/tile_products-inl.h"
#include "simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::tiles {

namespace {

// True if the tiles of this thread are set up for several kernels.
thread_local bool are_set_up = false;

void begin() {
  set_up_tiles();
  are_set_up = true;
}
void end() {
  give_up_tiles();
  are_set_up = false;
}

// A kernel with tiles set up.
template <auto kKernel>
struct InTiles;
template <class... Arguments, void (*kKernel)(Arguments...)>
struct InTiles<kKernel> {
  static void run(Arguments... arguments) {
    if (are_set_up) return kKernel(arguments...);
    const TileScope scope;
    kKernel(arguments...);
  }
};

const BackwardTable* backward_in_tiles() {
  static const BackwardTable table = [] {
    BackwardTable kernels = *backward_table();
    kernels.weigh = InTiles<recompute>::run;
    kernels.grad_scores = InTiles<grad_scores>::run;
    kernels.add_to_query = InTiles<add_to_query>::run;
    kernels.add_to_keys = InTiles<add_to_keys>::run;
    return kernels;
  }();
  return &table;
}

// Transposes pairs of keys, in squares of kTilePairs pairs and as many dimensions.
std::int64_t turn_pairs(const Real* rows, std::int64_t stride, std::int32_t count, std::int32_t dim,
                        Real* pairs) {
  const std::int64_t pair_stride =
      (count + kTileKeysTogether - 1) / kTileKeysTogether * std::int64_t{kTilePairs};
  alignas(64) static constexpr Real kNothing[kLanes / 2] = {};
  for (std::int32_t first = 0; first < count; first += kTileKeysTogether) {
    for (std::int32_t d = 0; d < dim; d += kLanes) {
      const auto row = [&](std::int32_t key) {
        return key < count ? rows + key * stride + d / 2 : kNothing;
      };
      Vec square[kTilePairs];
      for (int i = 0; i < kTilePairs; ++i) {
        square[i] = pair_of_rows(row(first + 2 * i), row(first + 2 * i + 1));
      }
      transpose(square);
      Real* const target = pairs + d * pair_stride + first / 2;
      for (int i = 0; i < kLanes; ++i) hn::Store(square[i], kReals, target + i * pair_stride);
    }
  }
  return pair_stride;
}

}  // namespace

// Decode panels are computed with vectors, in the order of AMX tiles.
KernelTable table_of(const KernelTable& numbers) {
  KernelTable table = numbers;
  table.in_numbers = &numbers;
  table.keys_together = kTileKeysTogether;
  table.begin = begin;
  table.end = end;
  table.backward = backward_in_tiles();
  table.loops.gradients = &table.backward->loops;
  table.attend = InTiles<attend>::run;
  table.attend_rows = attend_rows;
  table.score = InTiles<score>::run;
  table.absorb = InTiles<absorb>::run;
  const KernelTable& pairs = *with_bfloat16_products(numbers)->in_pairs;
  table.pack_pairs = pairs.pack_pairs;
  table.pair_panel = pairs.pair_panel;
  table.pair_keys = turn_pairs;
  return table;
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::tiles
HWY_AFTER_NAMESPACE();

namespace heed { inline namespace v0 { namespace kernels {

namespace {

#ifdef HEED_EMULATE_AMX
bool has_tiles() { return true; }
#else
bool has_tiles() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned kTiles = 1U << 24 | 1U << 22;  // AMX-TILE and AMX-BF16
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (edx & kTiles) != kTiles) {
    return false;
  }
  return platform::request_amx_tiles();
}
#endif

}  // namespace

bool has_tile_products() {
  static const bool has = has_bfloat16_products() && has_tiles();
  return has;
}

const KernelTable* with_tile_products(const KernelTable& table) {
  struct Tables {
    KernelTable numbers;
    KernelTable tiles;

    explicit Tables(const KernelTable& from) : numbers(from) {
      numbers.name = "AMX_BF16";
      tiles = HWY_NAMESPACE::tiles::table_of(numbers);
      numbers.in_pairs = &tiles;
    }
  };
  static const Tables tables(table);
  return &tables.numbers;
}

}}}  // namespace heed::v0::kernels

#elif HWY_ONCE && !(HWY_TARGETS & HWY_AVX3)

namespace heed { inline namespace v0 { namespace kernels {

bool has_tile_products() { return false; }
const KernelTable* with_tile_products(const KernelTable& table) { return &table; }

}}}  // namespace heed::v0::kernels

#endif
