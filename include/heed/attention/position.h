/// Position encodings: they give tokens a position in the sequence, which attention alone ignores.
#pragma once

#include <cstdint>

#include "heed/core/config.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// The fixed encoding of "Attention Is All You Need" (Vaswani et al., 2017), section 3.5:
///
///     PE(pos, 2i)     = sin(pos / 10000^(2i / d_model))
///     PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))
///
/// Returns [max_len, d_model], computed in double and rounded to T (float or double).
/// @throws InvalidArgument when a size is negative or d_model is odd. Each frequency takes a pair
/// of dimensions, sine and cosine: moving by k positions rotates the pair by a fixed angle, so that
/// relative positions are linear in the encoding.
template <class T = float>
HEED_API Tensor<T> sinusoidal_encoding(std::int64_t max_len, std::int64_t d_model);

/// A learnable table, [max_len, d_model], initialised with normal numbers of mean 0 and the given
/// standard deviation: max_len · d_model parameters. T is float or double.
/// @throws InvalidArgument when a size or `std` is negative.
template <class T = float>
HEED_API Tensor<T> learned_encoding(TorchGenerator& generator, std::int64_t max_len,
                                    std::int64_t d_model, double std = 0.02);

/// x[…, t, :] + table[t, :].
/// @param x     embeddings, [seq_len, d_model] or [batch, seq_len, d_model]
/// @param table encodings, [max_len, d_model]
/// @return a tensor of x's shape
/// @throws InvalidArgument when seq_len is greater than max_len, the widths differ, or a rank is
/// wrong.
HEED_API Tensor<float> add_positions(TensorView<const float> x, TensorView<const float> table);
HEED_API Tensor<double> add_positions(TensorView<const double> x, TensorView<const double> table);

/// The usual slopes of ALiBi (AttentionOptions::alibi_slopes), [num_heads]: 2^(−8i / n) for
/// i = 1 … n where n, the number of heads, is a power of two; otherwise those of the next smaller
/// power of two, followed by every second one of twice as many. T is float or double.
/// Source: Press et al., "Train Short, Test Long", 2022, section 3 and the authors' code.
/// @throws InvalidArgument when num_heads is negative.
template <class T = float>
HEED_API Tensor<T> alibi_slopes(std::int64_t num_heads);

}}  // namespace heed::v0
