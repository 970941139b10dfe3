// The forward and the backward pass over tokens or heads that are divided among ranks, and a rank's
// part of them: its computation while it sends and receives, and its final gradients.
#pragma once

#include <algorithm>
#include <exception>
#include <optional>
#include <vector>

#include "attention/request/gradient_tensors.h"
#include "attention/request/tensor_rows.h"
#include "distributed/messages.h"
#include "distributed/rank_sums.h"
#include "distributed/shared_problem.h"
#include "heed/attention/backward.h"
#include "heed/core/cancellation.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace distributed {

// While this object exists, no message is cancelled: a rank that stopped between two messages would
// leave the others waiting. Computation still uses the cancellation outer().
class UncancelledMessages {
 public:
  Cancellation* outer() const { return outer_; }

 private:
  Cancellation* outer_ = Cancellation::current();
  CancellationScope none_{nullptr};
};

// Runs a rank's computations. After a failure it computes nothing more, but the rank goes on with
// the messages that the others expect; finish() throws the failure.
class OwnPart {
 public:
  // The computations run under this cancellation.
  explicit OwnPart(Cancellation* cancellation) : cancellation_(cancellation) {}

  template <class Compute>
  void run(const Compute& compute) {
    if (failure_) return;
    try {
      const CancellationScope scope(cancellation_);
      compute();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  void finish() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  Cancellation* cancellation_;
  std::exception_ptr failure_;
};

// The memory for the results of this rank's queries.
template <class Real>
struct Results {
  MutableRows out;
  TensorView<Real> lse;      // empty when not wanted
  TensorView<Real> lse_low;  // empty when not wanted
  // The rounding error of out, in the type of out; absent when not wanted.
  std::optional<MutableRows> out_low = std::nullopt;
};

// All ranks call it; when one fails, all throw the same exception.
template <class Real>
void forward(const SharedProblem<Real>& problem, const Results<Real>& results);

// The results of the forward pass for this rank's queries, and the gradient of its output.
template <class Real>
struct BackwardInputs {
  Rows grad_out;
  Rows out;  // numbers of type Real
  TensorView<const Real> lse;
  TensorView<const Real> lse_low;  // empty if unknown
};

// The gradients of this rank's tokens, as sums of Real, and of all options. All ranks call it; when
// one fails, all throw the same exception.
template <class Real>
AttentionGradients<Real> backward(const SharedProblem<Real>& problem,
                                  const BackwardInputs<Real>& inputs);

// The counterparts of forward() and backward() for this division.
template <class Real>
void forward_by_heads(const SharedProblem<Real>& problem, const Results<Real>& results);

template <class Real>
AttentionGradients<Real> backward_by_heads(const SharedProblem<Real>& problem,
                                           const BackwardInputs<Real>& inputs);

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
