// The softmax weights of a panel's rows, a tile of keys at a time.
#pragma once

#include <cstdint>
#include <span>

#include "attention/fused/job.h"
#include "attention/fused/panel_rows.h"
#include "attention/kernels/kernels.h"

namespace heed::inline v0::fused {

// Memory for one tile, which panels share. The scores become logarithms of weights.
struct WeightScratch : ScoreScratch {
  float* weights = nullptr;  // [keys][panel_rows]
};

// Its schedule keeps scores. Weights are those before dropout.
class PanelWeights {
 public:
  PanelWeights(const Schedule& schedule, Workspace& workspace);

  // Prepares for rows whose denominators are known, by the natural logarithm of each: −infinity for
  // one that sees nothing. `rows` must outlive what is asked of them.
  void start(const PanelRows& rows, std::span<const float> lse);

  // Prepares for rows whose denominators are not known: every tile that a row sees is to be added,
  // in the order of keys, before finish().
  void start(const PanelRows& rows, const Terms<float>& terms);
  void add(const kernels::Tile& tile, const WeightScratch& scratch);
  void finish();

  // The natural logarithm of the denominator of row r.
  float lse(std::int32_t r) const { return lse_[r]; }

  // What a score weighs in row r, which sees something.
  double weight_of(double score, std::int32_t r) const;

  // The weights for a tile of keys that some row sees, in the scratch memory.
  kernels::WeightTile weigh(const kernels::Tile& tile, const WeightScratch& scratch) const;

 private:
  void score(const kernels::Tile& tile, const WeightScratch& scratch) const;
  void silence();

  const kernels::KernelTable& table_;
  const PanelRows* rows_ = nullptr;
  // [width]. The largest score of a row is close to the logarithm of its denominator, and so is the
  // rounded logarithm.
  float* high_;
  float* minus_low_;
  float* sum_;
  float* lse_;
};

}  // namespace heed::inline v0::fused
