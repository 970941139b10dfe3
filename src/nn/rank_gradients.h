// Sums the gradients of the parts of a batch over all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "distributed/rank_sums.h"
#include "heed/distributed/communicator.h"
#include "heed/nn/rank_mean.h"
#include "heed/nn/variable.h"
#include "nn/node.h"

namespace heed { inline namespace v0 { namespace nn {

// The mean over all parts of a batch, and each rank's share of the batch; the shares add up to 1.
struct SharedBatch {
  BatchMean mean;
  std::vector<double> shares;
};

// All ranks call it. Throws InvalidArgument as mean_over_ranks() does.
template <class T>
SharedBatch share_batch(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                        const BatchPart& part);

// Replaces each rank's gradients by Σ share · grad over all ranks, during the backward pass:
// gradients are sent in the reverse order of parameters, in which the pass reaches them, bucket by
// bucket, as soon as all gradients of a bucket are final. All ranks make one, with equal parameter
// shapes.
template <class T>
class RankGradients {
 public:
  RankGradients(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                std::vector<double> shares);

  // Called when the gradient of this leaf, possibly a parameter, is final.
  void take(const detail::Node<T>& leaf);

  // Called when all gradients are final. Then each gradient is the sum; parameters with a gradient
  // on no rank have none. Every rank must call it, even if its backward pass failed.
  void finish();

 private:
  struct Place {
    Variable<T> parameter;
    std::int64_t first;  // the index of its first number
    bool is_taken = false;
  };

  void put(Place& place);
  std::vector<bool> have_gradients();

  Communicator& ranks_;
  std::vector<Place> places_;
  std::unordered_map<const detail::Node<T>*, std::size_t> place_of_;
  std::size_t num_ready_ = 0;  // the length of the prefix of places that are taken
  std::int64_t num_numbers_ = 0;
  distributed::RankSums<T> sums_;
  std::vector<T>* numbers_;
};

}}}  // namespace heed::v0::nn
