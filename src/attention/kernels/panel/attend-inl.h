// The running softmax of panels of any width: the kernels of the table that compute products.
#if defined(HEED_ATTEND_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTEND_INL_H_
#undef HEED_ATTEND_INL_H_
#else
#define HEED_ATTEND_INL_H_
#endif

#include "attention/kernels/panel/by_width-inl.h"
#include "attention/kernels/panel/panel-inl.h"
#include "attention/kernels/panel/softmax-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

template <int kVectors>
struct Attend {
  static void run(const Tile& tile, const Panel& panel, const PanelOptions& options,
                  PanelState& state, Real* weights) {
    SoftmaxKernel<kVectors>(tile, panel, weights, options, state).attend();
  }
};
inline void attend(const Tile& tile, const Panel& panel, const PanelOptions& options,
                   PanelState& state, Real* weights) {
  by_width<Attend>(panel.vectors, tile, panel, options, state, weights);
}

template <int kVectors>
struct Score {
  static void run(const Tile& tile, const Panel& panel, Real* scores) {
    PanelKernel<kVectors>(tile, panel, scores).raw_scores();
  }
};
inline void score(const Tile& tile, const Panel& panel, Real* scores) {
  by_width<Score>(panel.vectors, tile, panel, scores);
}

template <int kVectors>
struct Absorb {
  static void run(const Tile& tile, const Panel& panel, const PanelOptions& options,
                  PanelState& state, Real* scores) {
    Tile scored = tile;
    scored.fetched = {};  // score() has fetched them
    SoftmaxKernel<kVectors>(scored, panel, scores, options, state).absorb();
  }
};
inline void absorb(const Tile& tile, const Panel& panel, const PanelOptions& options,
                   PanelState& state, Real* scores) {
  by_width<Absorb>(panel.vectors, tile, panel, options, state, scores);
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_ATTEND_INL_H_
