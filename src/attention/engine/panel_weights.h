// The softmax weights of a panel's rows, a tile of keys at a time.
#pragma once

#include <cstdint>
#include <span>

#include "attention/engine/panel_rows.h"

namespace heed { inline namespace v0 { namespace engine {

// Memory for one tile, which panels share. Scores become logarithms of weights.
template <class Real>
struct WeightScratch : ScoreScratch<Real> {
  Real* weights = nullptr;  // [keys][panel_rows]
};

template <class Real>
struct WeightScratchMemory {
  ScoreMemory<Real> scores;
  Piece<Real> weights;

  WeightScratchMemory() = default;
  WeightScratchMemory(const Schedule<Real>& schedule, Layout& layout)
      : scores(schedule, layout),
        weights(layout.add<Real>(schedule.tile_keys() * schedule.panel_rows)) {}
  WeightScratch<Real> in(std::byte* memory) const {
    return {scores.in(memory), weights.in(memory)};
  }
};

template <class Real>
struct WeightsMemory {
  Piece<Real> high;
  Piece<Real> minus_low;
  Piece<Real> sum;
  Piece<Real> lse;

  WeightsMemory() = default;
  WeightsMemory(const Schedule<Real>& schedule, Layout& layout)
      : high(layout.add<Real>(schedule.panel_rows)),
        minus_low(layout.add<Real>(schedule.panel_rows)),
        sum(layout.add<Real>(schedule.panel_rows)),
        lse(layout.add<Real>(schedule.panel_rows)) {}
};

// The weights before dropout of a panel whose schedule keeps scores.
template <class Real>
class PanelWeights {
 public:
  PanelWeights(const Schedule<Real>& schedule, const WeightsMemory<Real>& parts, std::byte* memory);

  // Starts with rows whose denominators are known, as their natural logarithms, −infinity for a row
  // that sees no key. `rows` must outlive the use of this object.
  void start(const PanelRows<Real>& rows, std::span<const Real> lse);

  // Starts with rows whose denominators are not known. Every tile that a row sees must be added, in
  // the order of keys, before finish().
  void start(const PanelRows<Real>& rows, const Request<Real>& request);
  void add(const kernels::BasicTile<Real>& tile, const WeightScratch<Real>& scratch);
  void finish();

  // The natural logarithm of the denominator of row r.
  Real lse(std::int32_t r) const { return lse_[r]; }
  // Its rounding error, rounded, after add() and finish(); 0 if it is not finite.
  Real lse_low(std::int32_t r) const;

  // The weight of a score in row r, which sees some key.
  double weight_of(double score, std::int32_t r) const;

  // The weights of a tile of keys that the rows visit, in the scratch memory.
  kernels::BasicWeightTile<Real> weigh(const kernels::BasicTile<Real>& tile,
                                       const WeightScratch<Real>& scratch) const;

  const PanelRows<Real>& rows() const { return *rows_; }

 private:
  void score(const kernels::BasicTile<Real>& tile, const WeightScratch<Real>& scratch) const;
  void mark_rows_without_weights();

  const kernels::BasicKernelTable<Real>& table_;
  const PanelRows<Real>* rows_ = nullptr;
  // [width], with the parts of BasicPanelLogSums. The largest score of a row is close to the
  // logarithm of its denominator, and so is the rounded logarithm.
  Real* high_;
  Real* minus_low_;
  Real* sum_;
  Real* lse_;
};

}}}  // namespace heed::v0::engine
