/// Sequences whose tokens are divided over ranks while a model computes: context parallelism.
#pragma once

#include <cstdint>

#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 { namespace nn {

/// While one lives, variables on this thread hold this rank's tokens of each sequence, as
/// distributed::TokenDivision deals them out:
///
///     const heed::nn::ContextParallel divided(ranks, ids.extent(1));
///     const auto logits = model.forward(divided.own(ids));  // [batch, own tokens, …]
///
/// Attention is then distributed::attention(), which all ranks call with the same options: masks,
/// terms, dropout and query_offset mean the places of tokens in the whole sequence. Position layers
/// and rotary positions give tokens those of their places. What has an answer for each token alone
/// (projections, norms, feed-forward, embeddings, cross_entropy) does what it always does, for
/// those that the rank has; the dropout of layers hides by the index among these. All ranks compute
/// the same functions in the same order, also those that have no token of a short sequence.
///
/// A backward pass, inside or after the scope, needs all ranks too. Of leaves that all ranks have,
/// it gives parts: their sum over ranks is the gradient of the sum over ranks of what backward()
/// was called on. Gradients of attention's terms, which belong to no token, are rank 0's.
///
/// What looks at tokens in another way throws InvalidArgument: LSTM, AdditiveAttention and its
/// relatives, feature maps, selected_blocks, continued(), attention_weights(), and weights or
/// observers that look at them.
///
/// Where a rank fails, the others throw what it threw if the whole is a part of run_on_all().
class HEED_API ContextParallel {
 public:
  /// Of sequences of `length` tokens. `ranks` must live until the last backward pass.
  /// @throws InvalidArgument unless length ≥ 0.
  ContextParallel(Communicator& ranks, std::int64_t length);
  ~ContextParallel();
  ContextParallel(const ContextParallel&) = delete;
  ContextParallel& operator=(const ContextParallel&) = delete;

  /// The innermost one of this thread; null where there is none.
  static const ContextParallel* current() noexcept;

  Communicator& ranks() const noexcept { return ranks_; }
  std::int64_t length() const noexcept { return length_; }  ///< of the whole sequence

  /// The places of this rank's tokens in the sequence, ascending.
  TensorView<const std::int64_t> places() const& { return places_.view(); }
  void places() const&& HEED_DELETED("name it first: it may end before the result");

  /// This rank's tokens, [batch, own tokens], of all, [batch, length].
  /// @throws InvalidArgument when the shape does not fit.
  Tensor<std::int64_t> own(TensorView<const std::int64_t> whole) const;

 private:
  Communicator& ranks_;
  std::int64_t length_;
  Tensor<std::int64_t> places_;
  const ContextParallel* outer_;
};

}}}  // namespace heed::v0::nn
