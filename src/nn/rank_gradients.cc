#include "nn/rank_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "distributed/agreement.h"
#include "distributed/messages.h"
#include "heed/core/error.h"
#include "heed/nn/rank_mean.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

using distributed::gather_all;

// The first message of each rank to the others.
struct PartHead {
  double loss;
  double weight;
  std::int64_t num_parameters;
  std::int64_t num_elements;
};

// Throws on all ranks or on none, because all have the same heads.
void check_heads(const std::vector<PartHead>& heads) {
  double sum = 0;
  for (std::size_t rank = 0; rank < heads.size(); ++rank) {
    const PartHead& head = heads[rank];
    if (head.num_parameters != heads[0].num_parameters ||
        head.num_elements != heads[0].num_elements) {
      throw InvalidArgument(fmt::format(
          "mean_over_ranks: rank {} has {} parameters of {} numbers, but rank 0 {} of {}", rank,
          head.num_parameters, head.num_elements, heads[0].num_parameters, heads[0].num_elements));
    }
    if (!(head.weight >= 0 && std::isfinite(head.weight))) {
      throw InvalidArgument(fmt::format(
          "mean_over_ranks: weight is {} on rank {}, expected a finite number, 0 or more",
          head.weight, rank));
    }
    sum += head.weight;
  }
  if (!(sum > 0)) {
    throw InvalidArgument(
        "mean_over_ranks: weight is 0 on every rank, expected a part of the batch");
  }
}

template <class T>
std::int64_t count_elements(const std::vector<Variable<T>>& parameters) {
  std::int64_t count = 0;
  for (const Variable<T>& parameter : parameters) count += parameter.num_elements();
  return count;
}

}  // namespace

template <class T>
SharedBatch share_batch(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                        const BatchPart& part) {
  const PartHead mine{part.loss, part.weight, static_cast<std::int64_t>(parameters.size()),
                      count_elements(parameters)};
  const std::vector<PartHead> heads = gather_all(ranks, std::span(&mine, 1));
  check_heads(heads);
  SharedBatch batch;
  BatchMean& mean = batch.mean;
  for (const PartHead& head : heads) mean.weight += head.weight;
  for (const PartHead& head : heads) {
    batch.shares.push_back(head.weight / mean.weight);
    if (head.weight == 0) {
      mean.every_rank_has_part = false;
    } else {
      mean.loss += batch.shares.back() * head.loss;
    }
  }
  return batch;
}

template <class T>
RankGradients<T>::RankGradients(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                                std::vector<double> shares)
    : ranks_(ranks), sums_(ranks, std::move(shares), distributed::kParameterSums) {
  for (auto next = parameters.rbegin(); next != parameters.rend(); ++next) {
    place_of_.emplace(next->node().get(), places_.size());
    places_.push_back({*next, num_numbers_});
    num_numbers_ += next->num_elements();
  }
  numbers_ = &sums_.prepare(num_numbers_);
}

template <class T>
void RankGradients<T>::put(Place& place) {
  place.is_taken = true;
  if (!place.parameter.has_grad()) return;
  std::ranges::copy(place.parameter.grad().elements(), numbers_->begin() + place.first);
}

template <class T>
void RankGradients<T>::take(const detail::Node<T>& leaf) {
  const auto found = place_of_.find(&leaf);
  if (found == place_of_.end()) return;
  put(places_[found->second]);
  while (num_ready_ < places_.size() && places_[num_ready_].is_taken) ++num_ready_;
  sums_.advance(num_ready_ == places_.size() ? num_numbers_ : places_[num_ready_].first);
}

// For each place, true if some rank has a gradient.
template <class T>
std::vector<bool> RankGradients<T>::have_gradients() {
  std::vector<std::uint8_t> mine;
  mine.reserve(places_.size());
  for (const Place& place : places_) mine.push_back(place.parameter.has_grad() ? 1 : 0);
  return distributed::any_rank_says(ranks_, mine);
}

template <class T>
void RankGradients<T>::finish() {
  for (Place& place : places_) {
    if (!place.is_taken) put(place);
  }
  sums_.finish();
  const std::vector<bool> have = have_gradients();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!have[i]) continue;
    const Variable<T>& parameter = places_[i].parameter;
    if (!parameter.has_grad()) parameter.node()->accumulate(Tensor<T>(parameter.shape()));
    std::copy_n(numbers_->begin() + places_[i].first, parameter.num_elements(),
                parameter.writable_grad().elements().begin());
  }
}

template SharedBatch share_batch(Communicator&, const std::vector<Variable<float>>&,
                                 const BatchPart&);
template SharedBatch share_batch(Communicator&, const std::vector<Variable<double>>&,
                                 const BatchPart&);
template class RankGradients<float>;
template class RankGradients<double>;

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
