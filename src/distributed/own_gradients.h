// The final gradients of a rank: those of its tokens and of all tensors in the options.
#pragma once

#include <algorithm>
#include <vector>

#include "attention/request/gradient_tensors.h"
#include "distributed/rank_sums.h"
#include "distributed/shared_problem.h"
#include "distributed/tags.h"
#include "heed/attention/backward.h"

namespace heed { inline namespace v0 { namespace distributed {

// Returns gradients that are all 0.
template <class Real>
AttentionGradients<Real> make_own_gradients(const SharedProblem<Real>& problem) {
  const Request<Real>& request = problem.request;
  const std::int64_t batch = request.shape.batch;
  const Shape query{batch, request.shape.num_heads, problem.num_own_queries(), request.head_dim()};
  const auto keys = [&](std::int64_t dim) {
    return Shape{batch, request.shape.num_kv_heads, problem.num_own_keys(), dim};
  };
  return {make_option_gradients(request), Tensor<Real>(query),
          Tensor<Real>(keys(request.head_dim())), Tensor<Real>(keys(request.value_dim()))};
}

template <class Real>
void sum_over_ranks(Communicator& ranks, Tensor<Real>& numbers) {
  if (ranks.size() == 1) return;
  RankSums<Real> sums(ranks, std::vector<double>(static_cast<std::size_t>(ranks.size()), 1.0),
                      kOptionSums);
  std::vector<Real>& all = sums.prepare(numbers.num_elements());
  std::copy_n(numbers.data(), numbers.num_elements(), all.begin());
  sums.finish();
  std::copy_n(all.begin(), numbers.num_elements(), numbers.data());
}

// Sums the ranks' gradients of the options. All ranks call it.
template <class Real>
void sum_options(const SharedProblem<Real>& problem, OptionGradients<Real>& gradients) {
  for (const auto& term : problem.request.terms) {
    if (term->gradient() != nullptr) sum_over_ranks(problem.ranks, gradients.*term->gradient());
  }
  sum_over_ranks(problem.ranks, gradients.sinks);
}

}}}  // namespace heed::v0::distributed
