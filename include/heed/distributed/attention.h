/// Attention over tokens that are divided among ranks: more of them than one machine holds.
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

/// How the tokens of a sequence are dealt out to ranks: in segments of 1024, to ranks 0, 1, …, P −
/// 1 and back from P − 1 to 0, so that a causal mask leaves all of them as much to do after two
/// rounds. A rank's tokens lie behind each other in the order of the sequence.
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
  /// The segment that a rank gets in a round, there or not.
  std::int64_t segment(int rank, std::int64_t round) const noexcept {
    return round * size_ + place(round, rank);
  }
  /// The tokens of a segment, by their places in the sequence.
  RowRange tokens(std::int64_t segment) const noexcept;
  /// How many tokens a rank has.
  std::int64_t num_tokens(int rank) const noexcept;
  /// No rank has more.
  std::int64_t most_tokens() const noexcept;
  /// How many of these its owner has before the segment.
  std::int64_t first_row(std::int64_t segment) const noexcept { return segment / size_ * kSegment; }
  /// The place in the sequence of a rank's token `row`, counted among its own.
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

/// The tokens of this rank, of a tensor [batch, heads, length, …] that has all of them.
/// @throws InvalidArgument unless it has at least three dimensions.
template <class T>
Tensor<T> own_tokens(const Communicator& ranks, const TensorView<const T>& whole);
/// All tokens, on every rank, of tensors [batch, heads, own length, …]. All ranks call it.
/// @throws InvalidArgument on every rank, unless they fit each other and are divided so.
template <class T>
Tensor<T> gather_tokens(Communicator& ranks, const TensorView<const T>& own);

/// What a rank computes of a call. Tensors are divided by tokens before and after it, either way.
enum class DividedBy {
  kAutomatic,  ///< what brings the busiest rank fewer bytes: plan() says which, and why
  kTokens,     ///< all heads, for the queries of its own tokens: keys and values are sent
  kHeads,      ///< some heads, for all tokens: queries and results are sent too
};

/// "automatic", "tokens" or "heads".
HEED_API std::string_view to_string(DividedBy by) noexcept;

/// The ranks of a call, and how they divide it.
struct Ranks {
  Ranks(Communicator& all,  // NOLINT(google-explicit-constructor)
        DividedBy by = DividedBy::kAutomatic)
      : communicator(all), divided_by(by) {}

  Communicator& communicator;
  DividedBy divided_by;
};

/// attention() of tokens of which every rank has its own: queries of as many tokens and keys of as
/// many as TokenDivision gives it. All ranks call it with the same options, of which tensors (bias,
/// masks) are given whole, by the places of all tokens: positions mean what they mean on one
/// machine. The results have the bits of one process, for any number of ranks.
///
/// Divided by tokens, the keys and values of one segment after the other are sent to those ranks
/// that see some of them, the next ones while the present ones are used. So a rank keeps its own
/// tokens and two segments, and every row sums its keys in the order in which one process does.
///
/// Divided by heads, of which each rank has as many, its heads of all tokens are sent to it, and
/// their results back. So a rank keeps as much again as it has, and waits for what is sent.
///
/// What is in half precision is sent so.
///
/// Divided by tokens, rows that must look at their keys twice (a result that is not finite, or
/// scores beyond 2¹⁸) have every rank gather all keys and values of their batch entry.
///
/// Sources: Liu et al., "Ring Attention with Blockwise Transformers for Near-Infinite Context",
/// 2023, where keys go round; Brandon et al., "Striped Attention", 2023, on dealing out tokens
/// under a causal mask; Jacobs et al., "DeepSpeed Ulysses", 2023, on dividing heads.
/// @param query [batch, num_heads, own q_len, head_dim]
/// @param key [batch, num_kv_heads, own kv_len, head_dim]
/// @param value [batch, num_kv_heads, own kv_len, value_dim]
/// @return out [batch, num_heads, own q_len, value_dim]
/// @throws InvalidArgument, the same on every rank, when shapes or options do not fit on one of
/// them, before anything is sent, when heads do not divide, or when no vector kernel can compute
/// it; what another rank threw, as run_on_all(); CommunicationError when one is gone.
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

/// The same with lse [batch, num_heads, own q_len], as attention_with_lse().
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

/// The gradients of the same, as attention_backward(): of the tokens of this rank, and of what the
/// options hold as on one machine, whole on every rank. Divided by tokens, what several ranks add
/// to a key is sent to its owner as floats (doubles, of doubles) and added in the order of ranks.
/// The bits are the same for the same number of ranks and the same way of dividing.
/// @param grad_out [batch, num_heads, own q_len, value_dim]
/// @param forward what distributed::attention_with_lse() made of the same tensors and options
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
