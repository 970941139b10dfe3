/// Merges results of attention over different keys into one.
#pragma once

#include <span>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// Attention over all keys, from attention_with_lse() of the same queries over parts of them: keys
/// that are split because they are too many, are in several caches or on several machines, or are
/// shared by some queries only.
///
/// @param parts at least one: out [batch, num_heads, q_len, value_dim] and lse [batch, num_heads,
/// q_len], or any other shapes in which out has one more dimension than lse, at its end. All parts
/// have the same shapes; the innermost dimension of out is contiguous, all others have any strides.
/// Packed sequences have lse with the heads in front: pass `lse.view().permute({1, 0})`.
///
///     lse = log Σ_i exp(lse_i)
///     out = Σ_i exp(lse_i − lse) · out_i
///
/// The lse_low of a part is added to its lse; without it a part whose lse has magnitude m gets a
/// weight with a relative error of up to m · 2⁻²⁴. Logarithms are natural. Merging in any order, at
/// once or pairwise, gives the same result within rounding. A part with lse −∞ in a row saw no key
/// there and changes no bit of the row, whatever its out holds; a row with lse −∞ in all parts has
/// out 0 and lse −∞. An lse of +∞ outweighs all finite ones: lse is +∞, and out the mean of the
/// parts that have it. NaN in the out of a part that saw a key, or in an lse, stays in its row.
///
/// Parts must not overlap: terms that occur once per row, for example a sink, are given to one part
/// only. Positions count from the first key of each part: for keys that begin at `first`,
/// query_offset is smaller by `first`, and dropout and score_mod use these positions.
///
/// Computed in double and rounded at the end. The bits do not depend on the number of threads.
/// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Ye et al.,
/// "FlashInfer: Efficient and Customizable Attention Engine for LLM Inference Serving", 2025,
/// section 2.2.
/// @throws InvalidArgument when there is no part or shapes do not fit, before anything is computed.
HEED_API AttentionOutput<float> merge_attention(std::span<const AttentionOutputView<float>> parts);
HEED_API AttentionOutput<Float16, float> merge_attention(
    std::span<const AttentionOutputView<Float16, float>> parts);
HEED_API AttentionOutput<BFloat16, float> merge_attention(
    std::span<const AttentionOutputView<BFloat16, float>> parts);
HEED_API AttentionOutput<double> merge_attention(
    std::span<const AttentionOutputView<double>> parts);

/// merge_attention() of two parts.
/// @throws InvalidArgument when their shapes differ or do not fit.
HEED_API AttentionOutput<float> merge_attention(const AttentionOutputView<float>& a,
                                                const AttentionOutputView<float>& b);
HEED_API AttentionOutput<Float16, float> merge_attention(
    const AttentionOutputView<Float16, float>& a, const AttentionOutputView<Float16, float>& b);
HEED_API AttentionOutput<BFloat16, float> merge_attention(
    const AttentionOutputView<BFloat16, float>& a, const AttentionOutputView<BFloat16, float>& b);
HEED_API AttentionOutput<double> merge_attention(const AttentionOutputView<double>& a,
                                                 const AttentionOutputView<double>& b);

}}  // namespace heed::v0
