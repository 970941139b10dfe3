/// Context parallelism: sequences whose tokens are divided among ranks.
#pragma once

#include <cstdint>

#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 { namespace nn {

/// During the lifetime of this object, variables on this thread hold only this rank's tokens of
/// each sequence, by distributed::TokenDivision:
///
///     const heed::nn::ContextParallel divided(ranks, ids.extent(1));
///     const auto logits = model.forward(divided.own(ids));  // [batch, own tokens, …]
///
/// Attention is then distributed::attention(), which all ranks call with the same options: masks,
/// terms, dropout and query_offset use positions in the whole sequence. So do position layers and
/// rotary positions. Functions of single tokens (projections, norms, feed-forward, embeddings,
/// cross_entropy) are computed for the tokens of the rank; the dropout of layers depends on a
/// token's index among these. All ranks compute the same functions in the same order, even a rank
/// without tokens of a short sequence.
///
/// A backward pass, inside or after the scope, also needs all ranks. It gives parts of the
/// gradients of shared leaves: the sum of the parts over ranks is the gradient of the sum over
/// ranks of the variables on which backward() was called. Gradients of attention's terms, which
/// belong to no token, are added on rank 0 alone.
///
/// Functions that need all tokens in another way throw InvalidArgument: LSTM, AdditiveAttention and
/// MultiplicativeAttention, feature maps, selected_blocks, continued(), attention_weights(),
/// returned weights and observers.
///
/// Where a rank fails, the others throw its exception if all of this is inside run_on_all().
class HEED_API ContextParallel {
 public:
  /// For sequences of `length` tokens. `ranks` must exist until the last backward pass.
  /// @throws InvalidArgument unless length ≥ 0.
  ContextParallel(Communicator& ranks, std::int64_t length);
  ~ContextParallel();
  ContextParallel(const ContextParallel&) = delete;
  ContextParallel& operator=(const ContextParallel&) = delete;

  /// The innermost object of this thread; null where there is none.
  static const ContextParallel* current() noexcept;

  Communicator& ranks() const noexcept { return ranks_; }
  std::int64_t length() const noexcept { return length_; }  ///< of the whole sequence

  /// The positions of this rank's tokens in the sequence, ascending.
  TensorView<const std::int64_t> places() const& { return places_.view(); }
  void places() const&& HEED_DELETED("name it first: it may end before the result");

  /// This rank's tokens, [batch, own tokens], from all tokens, [batch, length].
  /// @throws InvalidArgument when the shape does not fit.
  Tensor<std::int64_t> own(TensorView<const std::int64_t> whole) const;

 private:
  Communicator& ranks_;
  std::int64_t length_;
  Tensor<std::int64_t> places_;
  const ContextParallel* outer_;
};

}}}  // namespace heed::v0::nn
