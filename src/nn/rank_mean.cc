#include "heed/nn/rank_mean.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "distributed/agreement.h"
#include "distributed/rank_sums.h"
#include "heed/error.h"
#include "nn/node.h"

namespace heed::inline v0::nn {

namespace {

using distributed::gather_all;
using distributed::RankSums;

// What each rank tells the others first.
struct PartHead {
  double loss;
  double weight;
  std::int64_t num_parameters;
  std::int64_t num_elements;
};

// Throws on all ranks or on none: all have the same heads.
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

// Which parameters have a gradient on some rank.
template <class T>
std::vector<Variable<T>> with_gradients(Communicator& ranks,
                                        const std::vector<Variable<T>>& parameters) {
  std::vector<char> mine;
  mine.reserve(parameters.size());
  for (const Variable<T>& parameter : parameters) mine.push_back(parameter.has_grad() ? 1 : 0);
  const std::vector<char> all = gather_all(ranks, std::span<const char>(mine));
  std::vector<Variable<T>> found;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    char has_grad = 0;
    for (std::size_t at = i; at < all.size(); at += parameters.size()) has_grad |= all[at];
    if (has_grad != 0) found.push_back(parameters[i]);
  }
  return found;
}

template <class T>
std::int64_t count_elements(const std::vector<Variable<T>>& parameters) {
  std::int64_t count = 0;
  for (const Variable<T>& parameter : parameters) count += parameter.num_elements();
  return count;
}

template <class T>
void sum_gradients(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                   std::vector<double> shares) {
  const std::vector<Variable<T>> summed = with_gradients(ranks, parameters);
  RankSums<T> sums(ranks, std::move(shares));
  std::vector<T>& numbers = sums.prepare(count_elements(summed));
  auto place = numbers.begin();
  for (const Variable<T>& parameter : summed) {
    if (parameter.has_grad()) std::ranges::copy(parameter.grad().elements(), place);
    place += parameter.num_elements();
  }
  sums.run();
  place = numbers.begin();
  for (const Variable<T>& parameter : summed) {
    if (!parameter.has_grad()) parameter.node()->accumulate(Tensor<T>(parameter.shape()));
    std::copy_n(place, parameter.num_elements(), parameter.writable_grad().elements().begin());
    place += parameter.num_elements();
  }
}

}  // namespace

template <class T>
BatchMean mean_over_ranks(Communicator& ranks, const std::vector<Variable<T>>& parameters,
                          const BatchPart& part) {
  const PartHead mine{part.loss, part.weight, static_cast<std::int64_t>(parameters.size()),
                      count_elements(parameters)};
  const std::vector<PartHead> heads = gather_all(ranks, std::span(&mine, 1));
  check_heads(heads);
  BatchMean mean;
  for (const PartHead& head : heads) mean.weight += head.weight;
  std::vector<double> shares;
  for (const PartHead& head : heads) {
    shares.push_back(head.weight / mean.weight);
    if (head.weight == 0) {
      mean.every_rank_has_part = false;
    } else {
      mean.loss += shares.back() * head.loss;
    }
  }
  if (ranks.size() > 1) sum_gradients(ranks, parameters, std::move(shares));
  return mean;
}

template BatchMean mean_over_ranks(Communicator&, const std::vector<Variable<float>>&,
                                   const BatchPart&);
template BatchMean mean_over_ranks(Communicator&, const std::vector<Variable<double>>&,
                                   const BatchPart&);

}  // namespace heed::inline v0::nn
