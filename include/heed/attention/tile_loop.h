// The loop over a tile of scores that calls a user's function.
//
// The user's compiler compiles it, mostly for a baseline processor. Therefore it exists once for
// each instruction set of the kernels, and the version of the kernels in use is called: the result
// depends on the instruction set alone.
#pragma once

#include <cstdint>
#include <type_traits>

#include "heed/attention/score_position.h"
#include "heed/core/config.h"
#include "heed/core/dual.h"

namespace heed { inline namespace v0 { namespace detail {

// The instruction sets that the tile loop is compiled for.
enum class TileTarget : std::int32_t { kBaseline, kAvx2, kAvx512 };

// A tile of scores that masks and terms change: [keys][width], with a row of attention in every
// column. Columns beyond the last row repeat its head and position, so that a function can be
// called for any cell.
template <class Real>
struct BasicScoreTile {
  Real* scores;        // of key first_key + j and row r at scores[j · width + r]
  std::int32_t width;  // a multiple of the target's lanes
  std::int32_t num_rows;
  std::int32_t first_key;
  std::int32_t begin;  // the function is called for the keys begin ≤ j < end
  std::int32_t end;
  std::int32_t batch;
  const std::int32_t* heads;  // [width], of each row
  const std::int32_t* q_idx;  // [width], positions: query_offset is included
  TileTarget target;
  // [head_dim][width], the query of each row times scale. Null for a user's function.
  const Real* query = nullptr;
  std::int32_t head_dim = 0;
  // Unless null, the derivative of every score with respect to the unmodified one, in the layout of
  // the scores: a function that modifies a score multiplies its derivative.
  Real* derivatives = nullptr;
};
using ScoreTile = BasicScoreTile<float>;

// The innermost loop is one vector long, which compilers turn into vector code even at low
// optimisation: at -O2, GCC vectorises only loops without a remainder. It must not be unrolled
// first. Nothing that a function reads overlaps the scores, which are the library's own memory.
#if defined(__clang__)
// A user's function that cannot be vectorised is no error.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#define HEED_INDEPENDENT_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define HEED_INDEPENDENT_LANES _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif

// score = Change::apply(function, score, position) for every score of the tile; if
// Change::kDifferentiates, for the dual number of score and derivative. A small function object is
// copied, so that a store to a score cannot change it.
template <class Change, int kVectorBytes, class Real, class F>
[[gnu::always_inline, gnu::flatten]] inline void tile_loop_inline(const BasicScoreTile<Real>& tile,
                                                                  const F& function) {
  constexpr std::int32_t kLanes = kVectorBytes / sizeof(Real);
  constexpr bool kIsCheap = std::is_trivially_copyable_v<F> && sizeof(F) <= 64;
  const std::conditional_t<kIsCheap, const F, const F&> held = function;
  for (std::int32_t first = 0; first < tile.width; first += kLanes) {
    const std::int32_t* heads = tile.heads + first;
    const std::int32_t* q_idx = tile.q_idx + first;
    for (std::int32_t j = tile.begin; j < tile.end; ++j) {
      const std::int64_t offset = static_cast<std::int64_t>(j) * tile.width + first;
      Real* scores = tile.scores + offset;
      if constexpr (Change::kDifferentiates) {
        Real* derivatives = tile.derivatives + offset;
        HEED_INDEPENDENT_LANES
        for (std::int32_t r = 0; r < kLanes; ++r) {
          const Dual<Real> result =
              Change::apply(held, Dual<Real>(scores[r], derivatives[r]),
                            ScorePosition{tile.batch, heads[r], q_idx[r], tile.first_key + j});
          scores[r] = result.value;
          derivatives[r] = result.derivative;
        }
      } else {
        HEED_INDEPENDENT_LANES
        for (std::int32_t r = 0; r < kLanes; ++r) {
          scores[r] = Change::apply(
              held, scores[r], ScorePosition{tile.batch, heads[r], q_idx[r], tile.first_key + j});
        }
      }
    }
  }
}

#undef HEED_INDEPENDENT_LANES

template <class Change, class Real, class F>
[[gnu::noinline, gnu::flatten]] void tile_loop_baseline(const BasicScoreTile<Real>& tile,
                                                        const F& function) {
  tile_loop_inline<Change, 16>(tile, function);
}

#if defined(__x86_64__)
template <class Change, class Real, class F>
[[gnu::target("avx2,fma"), gnu::noinline, gnu::flatten]] void tile_loop_avx2(
    const BasicScoreTile<Real>& tile, const F& function) {
  tile_loop_inline<Change, 32>(tile, function);
}

// Clang uses 64-byte vectors where allowed; GCC only with prefer-vector-width.
#if defined(__clang__)
#define HEED_TARGET_AVX512 "avx512f,avx512dq,avx512bw,avx512vl"
#else
#define HEED_TARGET_AVX512 "avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512"
#endif

template <class Change, class Real, class F>
[[gnu::target(HEED_TARGET_AVX512), gnu::noinline, gnu::flatten]] void tile_loop_avx512(
    const BasicScoreTile<Real>& tile, const F& function) {
  tile_loop_inline<Change, 64>(tile, function);
}

#undef HEED_TARGET_AVX512
#endif

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

template <class Change, class Real, class F>
void tile_loop(const BasicScoreTile<Real>& tile, const F& function) {
#if defined(__x86_64__)
  if (tile.target == TileTarget::kAvx512) return tile_loop_avx512<Change>(tile, function);
  if (tile.target == TileTarget::kAvx2) return tile_loop_avx2<Change>(tile, function);
#endif
  tile_loop_baseline<Change>(tile, function);
}

}}}  // namespace heed::v0::detail
