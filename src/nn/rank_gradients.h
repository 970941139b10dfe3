// Gradients that become those of the whole batch, on every rank.
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

// What the parts of a batch make together, and how much of it each rank has: together 1.
struct SharedBatch {
  BatchMean mean;
  std::vector<double> shares;
};

// All ranks call it, and it throws InvalidArgument as mean_over_ranks() does.
template <class T>
SharedBatch share_batch(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                        const BatchPart& part);

// Makes of each rank's gradients Σ share · grad over all ranks, while the backward pass goes on:
// gradients are sent in the reverse order of parameters, in which a pass comes to them, bucket by
// bucket, as soon as all in a bucket are final. All ranks make one, with parameters that fit.
template <class T>
class RankGradients {
 public:
  RankGradients(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                std::vector<double> shares);

  // The gradient of this leaf, if it is a parameter, is final.
  void take(const detail::Node<T>& leaf);

  // Those of all others are, too. Then each is the sum; parameters that have a gradient on no rank
  // have none. To be called on every rank, even where the backward pass has failed.
  void finish();

 private:
  struct Place {
    Variable<T> parameter;
    std::int64_t first;  // where its numbers begin
    bool is_taken = false;
  };

  void put(Place& place);
  std::vector<bool> have_gradients();

  Communicator& ranks_;
  std::vector<Place> places_;
  std::unordered_map<const detail::Node<T>*, std::size_t> place_of_;
  std::size_t num_ready_ = 0;  // so many places from the first on are taken
  std::int64_t num_numbers_ = 0;
  distributed::RankSums<T> sums_;
  std::vector<T>* numbers_;
};

}}}  // namespace heed::v0::nn
