/// Attention over tokens that are divided among ranks, for sequences too long for one machine.
#pragma once

#include <cstdint>
#include <string_view>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/attention/mask.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 { namespace distributed {

/// The division of a sequence's tokens among P ranks: segments of 1024 tokens go to the ranks 0, 1,
/// …, P − 1 and then back from P − 1 to 0, so that under a causal mask all ranks have equal work
/// after two rounds. A rank stores its tokens one after the other, in the order of the sequence.
class HEED_API TokenDivision {
 public:
  static constexpr std::int64_t kSegment = 1024;

  /// @throws InvalidArgument unless length ≥ 0 and size ≥ 1.
  TokenDivision(std::int64_t length, int size);

  std::int64_t length() const noexcept { return length_; }
  std::int64_t num_segments() const noexcept { return (length_ + kSegment - 1) / kSegment; }
  int owner(std::int64_t segment) const noexcept {
    return static_cast<int>(place(segment / size_, segment % size_));
  }
  /// The segment of a rank in a round; it may be beyond the last segment.
  std::int64_t segment(int rank, std::int64_t round) const noexcept {
    return round * size_ + place(round, rank);
  }
  /// The tokens of a segment, as positions in the sequence.
  RowRange tokens(std::int64_t segment) const noexcept;
  /// The number of tokens of a rank.
  std::int64_t num_tokens(int rank) const noexcept;
  /// The largest num_tokens() of any rank.
  std::int64_t most_tokens() const noexcept;
  /// The number of tokens that the segment's owner has before it.
  std::int64_t first_row(std::int64_t segment) const noexcept { return segment / size_ * kSegment; }
  /// The position in the sequence of a rank's token `row`, counted among its own.
  std::int64_t token(int rank, std::int64_t row) const noexcept {
    return segment(rank, row / kSegment) * kSegment + row % kSegment;
  }

 private:
  // Odd rounds go from the last rank to the first.
  std::int64_t place(std::int64_t round, std::int64_t i) const noexcept {
    return round % 2 == 0 ? i : size_ - 1 - i;
  }

  std::int64_t length_;
  int size_;
};

/// The tokens of this rank, from a tensor [batch, heads, length, …] that has all tokens.
/// @throws InvalidArgument unless it has at least three dimensions.
template <class T>
Tensor<T> own_tokens(const Communicator& ranks, const TensorView<const T>& whole);
/// All tokens, on every rank, from tensors [batch, heads, own length, …]. All ranks call it.
/// @throws InvalidArgument on every rank, unless the tensors fit each other and TokenDivision.
template <class T>
Tensor<T> gather_tokens(Communicator& ranks, const TensorView<const T>& own);

/// How a call's work is divided. Its arguments and results are divided by tokens in either case.
enum class DividedBy {
  kAutomatic,  ///< the one that sends fewer bytes to the busiest rank: plan() gives it and the
               ///< reason
  kTokens,  ///< a rank computes all heads for the queries of its tokens: keys and values are sent
  kHeads,   ///< a rank computes some heads for all tokens: queries and results are sent too
};

/// The name of a division: "automatic", "tokens" or "heads".
HEED_API std::string_view to_string(DividedBy by) noexcept;

/// The ranks of a call, and how they divide its work.
struct Ranks {
  Ranks(Communicator& all,  // NOLINT(google-explicit-constructor)
        DividedBy by = DividedBy::kAutomatic)
      : communicator(all), divided_by(by) {}

  Communicator& communicator;
  DividedBy divided_by;
};

/// attention() over tokens that are divided among ranks: each rank passes the queries and the keys
/// of the tokens that TokenDivision gives it. All ranks call it with the same options; tensors in
/// options (bias, masks) are passed whole, and all positions are those of the whole sequence, as on
/// one machine. The results have the bits of one process, for any number of ranks.
///
/// Divided by tokens, the keys and values of one segment after the other are sent to the ranks that
/// see some of them, each while the one before is processed. A rank holds its own tokens and two
/// segments, and every row sums its keys in the order of one process.
///
/// Divided by heads, each rank receives all tokens of its heads, of which every rank has equally
/// many, and sends their results back. A rank holds twice its data, and waits for the messages.
///
/// Half-precision tensors are sent in half precision.
///
/// Divided by tokens, rows that must read their keys twice (a result that is not finite, or
/// scores beyond 2¹⁸) make every rank gather all keys and values of their batch entry.
///
/// Sources: Liu et al., "Ring Attention with Blockwise Transformers for Near-Infinite Context",
/// 2023, where keys rotate among ranks; Brandon et al., "Striped Attention", 2023, on dividing
/// tokens under a causal mask; Jacobs et al., "DeepSpeed Ulysses", 2023, on dividing heads.
/// @param query [batch, num_heads, own q_len, head_dim]
/// @param key [batch, num_kv_heads, own kv_len, head_dim]
/// @param value [batch, num_kv_heads, own kv_len, value_dim]
/// @return out [batch, num_heads, own q_len, value_dim]
/// @throws InvalidArgument, the same on every rank, when shapes or options do not fit on one of
/// them, before anything is sent, when heads do not divide, or when no vector kernel can compute
/// it; exceptions of other ranks, as run_on_all(); CommunicationError when a rank is gone.
HEED_API Tensor<float> attention(const Ranks& ranks, FloatView query, FloatView key,
                                 FloatView value, const AttentionOptions& options = {});
HEED_API Tensor<Float16> attention(const Ranks& ranks, Float16View query, Float16View key,
                                   Float16View value, const AttentionOptions& options = {});
HEED_API Tensor<BFloat16> attention(const Ranks& ranks, BFloat16View query, BFloat16View key,
                                    BFloat16View value, const AttentionOptions& options = {});
HEED_API Tensor<float> attention(const Ranks& ranks, FloatView query, Float16View key,
                                 Float16View value, const AttentionOptions& options = {});
HEED_API Tensor<float> attention(const Ranks& ranks, FloatView query, BFloat16View key,
                                 BFloat16View value, const AttentionOptions& options = {});
HEED_API Tensor<double> attention(const Ranks& ranks, DoubleView query, DoubleView key,
                                  DoubleView value, const AttentionOptions64& options = {});

/// distributed::attention() with lse [batch, num_heads, own q_len], as attention_with_lse().
HEED_API AttentionOutput<float> attention_with_lse(const Ranks& ranks, FloatView query,
                                                   FloatView key, FloatView value,
                                                   const AttentionOptions& options = {});
HEED_API AttentionOutput<Float16, float> attention_with_lse(const Ranks& ranks, Float16View query,
                                                            Float16View key, Float16View value,
                                                            const AttentionOptions& options = {});
HEED_API AttentionOutput<BFloat16, float> attention_with_lse(const Ranks& ranks, BFloat16View query,
                                                             BFloat16View key, BFloat16View value,
                                                             const AttentionOptions& options = {});
HEED_API AttentionOutput<double> attention_with_lse(const Ranks& ranks, DoubleView query,
                                                    DoubleView key, DoubleView value,
                                                    const AttentionOptions64& options = {});

/// The gradients of distributed::attention(), as attention_backward(): those of this rank's tokens,
/// and those of the options, whole on every rank. Divided by tokens, the gradients that several
/// ranks add to a key are sent to its owner as floats (doubles for double tensors) and added in the
/// order of ranks. The bits are the same for the same number of ranks and the same division.
/// @param grad_out [batch, num_heads, own q_len, value_dim]
/// @param forward the result of distributed::attention_with_lse() for the same tensors and options
/// @throws as distributed::attention()
HEED_API AttentionGradients<float> attention_backward(const Ranks& ranks, FloatView grad_out,
                                                      FloatView query, FloatView key,
                                                      FloatView value,
                                                      const AttentionOutputView<float>& forward,
                                                      const AttentionOptions& options = {});
HEED_API AttentionGradients<Float16, float> attention_backward(
    const Ranks& ranks, Float16View grad_out, Float16View query, Float16View key, Float16View value,
    const AttentionOutputView<Float16, float>& forward, const AttentionOptions& options = {});
HEED_API AttentionGradients<BFloat16, float> attention_backward(
    const Ranks& ranks, BFloat16View grad_out, BFloat16View query, BFloat16View key,
    BFloat16View value, const AttentionOutputView<BFloat16, float>& forward,
    const AttentionOptions& options = {});
HEED_API AttentionGradients<double> attention_backward(const Ranks& ranks, DoubleView grad_out,
                                                       DoubleView query, DoubleView key,
                                                       DoubleView value,
                                                       const AttentionOutputView<double>& forward,
                                                       const AttentionOptions64& options = {});

}}}  // namespace heed::v0::distributed
