/// Training with a batch that is divided among ranks.
#pragma once

#include <vector>

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"
#include "heed/nn/variable.h"

namespace heed { inline namespace v0 { namespace nn {

/// The loss of a rank's part of a batch, as a mean over `weight` items, e.g. tokens. 0: no part.
struct BatchPart {
  double loss = 0;
  double weight = 1;
};

/// The loss of the whole batch.
struct BatchMean {
  double loss = 0;    ///< Σ weight · loss / Σ weight
  double weight = 0;  ///< Σ weight
  bool every_rank_has_part = true;
};

/// Turns the gradients of the parts of a batch into those of the batch, on every rank: grad ← Σ
/// weight · grad / Σ weight. Each sum is computed in double, in the order of ranks, by one rank,
/// and rounded once: all ranks have the same bits, and repeated runs with the same number of ranks
/// have them too. Parameters without a gradient on any rank have none afterwards; otherwise a
/// missing gradient counts as 0.
///
/// Gradients are sent in buckets of 2²⁰ numbers: each rank sums its share of a bucket while the
/// next ones are in transit, and sends the sums to all, so that a rank sends and receives 2 (P − 1)
/// / P times the size of its gradients. All ranks call it after backward(); messages have the tags
/// 5 and 6.
/// @throws InvalidArgument, on all ranks, when parameters differ in number or size, a weight is
/// negative or not finite, or all are 0.
template <class T>
HEED_API BatchMean mean_over_ranks(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                                   const BatchPart& part);

}}}  // namespace heed::v0::nn
