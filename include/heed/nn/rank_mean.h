/// Learning from a batch that several ranks have parts of.
#pragma once

#include <vector>

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"
#include "heed/nn/variable.h"

namespace heed { inline namespace v0 { namespace nn {

/// What a rank's part of a batch gave: a mean over so many things, tokens say. 0: it has no part.
struct BatchPart {
  double loss = 0;
  double weight = 1;
};

/// What all parts together give.
struct BatchMean {
  double loss = 0;    ///< Σ weight · loss / Σ weight
  double weight = 0;  ///< Σ weight
  bool every_rank_has_part = true;
};

/// Makes of the gradients of the parts of a batch those of the batch, on every rank:
/// grad ← Σ weight · grad / Σ weight. Each sum is computed in double, in the order of ranks, by one
/// rank, and rounded once: all ranks have the same bits, and so have they again with as many ranks.
/// Parameters that have a gradient on no rank have none afterwards; where some rank has none it
/// counts as 0.
///
/// Gradients go in buckets of 2²⁰ numbers: each rank adds up its share of a bucket while the next
/// ones are on their way, and sends the sums to all, so that a rank sends and receives 2 (P − 1) /
/// P times its gradients. All ranks call it, when backward() is done; messages have the tags 5
/// and 6.
/// @throws InvalidArgument, on all ranks, when parameters differ in number or size, a weight is
/// negative or not finite, or all are 0.
template <class T>
HEED_API BatchMean mean_over_ranks(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                                   const BatchPart& part);

}}}  // namespace heed::v0::nn
