#include "heed/nn/rank_mean.h"

#include <utility>

#include "nn/rank_gradients.h"

namespace heed { inline namespace v0 { namespace nn {

template <class T>
BatchMean mean_over_ranks(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                          const BatchPart& part) {
  SharedBatch batch = share_batch(ranks, parameters, part);
  if (ranks.size() > 1) RankGradients<T>(ranks, parameters, std::move(batch.shares)).finish();
  return batch.mean;
}

template BatchMean mean_over_ranks(Communicator&, const std::vector<Variable<float>>&,
                                   const BatchPart&);
template BatchMean mean_over_ranks(Communicator&, const std::vector<Variable<double>>&,
                                   const BatchPart&);

}}}  // namespace heed::v0::nn
