/// Rotary position embeddings: pairs of dimensions are rotated by angles proportional to the
/// position, so that the product of a query and a key depends on the distance between them.
///
/// Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021;
/// caches, positions and layouts are those of ONNX's operator RotaryEmbedding, opset 23. The
/// contract is docs/linear_attention.md.
#pragma once

#include <cstdint>
#include <optional>

#include "heed/attention/rotary_frequencies.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// attention_factor times the cosines and sines of the angles position · inv_freq, each
/// [max_len, rotary_dim / 2].
template <class Real>
struct RotaryCaches {
  Tensor<Real> cos;
  Tensor<Real> sin;
};

/// The caches of positions 0 … max_len − 1, computed in double and rounded to Real (float or
/// double).
/// @throws InvalidArgument when max_len is negative.
template <class Real = float>
HEED_API RotaryCaches<Real> rotary_caches(std::int64_t max_len,
                                          const RotaryFrequencies& frequencies);
/// The caches of rotary_frequencies(rotary_dim, base), without scaling.
/// @throws InvalidArgument as rotary_frequencies() does, and when max_len is negative.
template <class Real = float>
RotaryCaches<Real> rotary_caches(std::int64_t max_len, std::int64_t rotary_dim,
                                 double base = 10000) {
  return rotary_caches<Real>(max_len, rotary_frequencies(rotary_dim, base));
}

/// The dimensions that are rotated together. It depends on the model and has no default, because
/// with the wrong one results are wrong without an error.
enum class RotaryPairing : std::uint8_t {
  kHalves,      ///< (i, i + rotary_dim / 2), as in Llama's weights at Hugging Face and GPT-NeoX
  kNeighbours,  ///< (2i, 2i + 1), as in RoFormer and GPT-J; ONNX's interleaved
};

/// The options of rotary_embedding.
struct RotaryOptions {
  /// The number of rotated dimensions, the first ones of a head; head_dim when not given. Even.
  std::optional<std::int64_t> rotary_dim = std::nullopt;
  /// The row of the caches for each token, of a shape that broadcasts to [batch, length]; the
  /// caches are then of rank 2.
  std::optional<TensorView<const std::int64_t>> position_ids = std::nullopt;
  /// Without position_ids, the position of token 0 in caches of rank 2.
  std::int64_t offset = 0;
  /// The number of heads: required for x of rank 3, refused otherwise.
  std::optional<std::int64_t> num_heads = std::nullopt;
};

/// Rotates pairs (a, b) of the first rotary_dim dimensions of x:
///
///     a' = a · cos − b · sin,   b' = a · sin + b · cos
///
/// @param x [batch, num_heads, length, head_dim], or [batch, length, num_heads · head_dim] with
/// options.num_heads; the innermost dimension is contiguous, the others have any strides
/// @param cos, sin [max_len, rotary_dim / 2], of which position_ids or offset select rows, or
/// [batch, length, rotary_dim / 2], a row for each token; any strides
/// @return a tensor of x's shape. Half-precision numbers are rotated in float and then rounded.
/// @throws InvalidArgument when shapes or positions do not fit, before anything is computed.
HEED_API Tensor<float> rotary_embedding(FloatView x, FloatView cos, FloatView sin,
                                        RotaryPairing pairing, const RotaryOptions& options = {});
HEED_API Tensor<double> rotary_embedding(DoubleView x, DoubleView cos, DoubleView sin,
                                         RotaryPairing pairing, const RotaryOptions& options = {});
HEED_API Tensor<Float16> rotary_embedding(Float16View x, FloatView cos, FloatView sin,
                                          RotaryPairing pairing, const RotaryOptions& options = {});
HEED_API Tensor<BFloat16> rotary_embedding(BFloat16View x, FloatView cos, FloatView sin,
                                           RotaryPairing pairing,
                                           const RotaryOptions& options = {});

/// The derivative of a loss with respect to x: the inverse rotation of grad_out, the derivative
/// with respect to the result, in its shape. The caches receive no gradient.
/// @throws InvalidArgument as rotary_embedding does.
HEED_API Tensor<float> rotary_embedding_backward(FloatView grad_out, FloatView cos, FloatView sin,
                                                 RotaryPairing pairing,
                                                 const RotaryOptions& options = {});
HEED_API Tensor<double> rotary_embedding_backward(DoubleView grad_out, DoubleView cos,
                                                  DoubleView sin, RotaryPairing pairing,
                                                  const RotaryOptions& options = {});

}}  // namespace heed::v0
