/// Rotary position embeddings: pairs of dimensions turned by angles that grow with the position, so
/// that the product of a query and a key depends on how far apart they stand.
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
/// The same of rotary_frequencies(rotary_dim, base), which are not scaled.
template <class Real = float>
RotaryCaches<Real> rotary_caches(std::int64_t max_len, std::int64_t rotary_dim,
                                 double base = 10000) {
  return rotary_caches<Real>(max_len, rotary_frequencies(rotary_dim, base));
}

/// Which dimensions are turned together. Models that differ in nothing else need different ones,
/// and a wrong one is no error but another function: there is no default.
enum class RotaryPairing : std::uint8_t {
  kHalves,      ///< (i, i + rotary_dim / 2), as in Llama's weights at Hugging Face and GPT-NeoX
  kNeighbours,  ///< (2i, 2i + 1), as in RoFormer and GPT-J; ONNX's interleaved
};

struct RotaryOptions {
  /// How many dimensions are turned, the first ones; head_dim when not given. Even.
  std::optional<std::int64_t> rotary_dim = std::nullopt;
  /// Rows of the caches, [batch, length] or what broadcasts to it; caches are then of rank 2.
  std::optional<TensorView<const std::int64_t>> position_ids = std::nullopt;
  /// Without position_ids, the position of token 0 in caches of rank 2.
  std::int64_t offset = 0;
  /// Needed for x of rank 3, and refused otherwise.
  std::optional<std::int64_t> num_heads = std::nullopt;
};

/// x with pairs (a, b) of its first rotary_dim dimensions turned:
///
///     a' = a · cos − b · sin,   b' = a · sin + b · cos
///
/// @param x [batch, num_heads, length, head_dim], or [batch, length, num_heads · head_dim] with
/// options.num_heads; any strides but in the innermost dimension, which is contiguous
/// @param cos, sin [max_len, rotary_dim / 2], whose rows position_ids or offset choose, or
/// [batch, length, rotary_dim / 2], a row for each token; any strides
/// @return a tensor of x's shape. Half-precision numbers are turned in float and then rounded.
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

/// The derivative of a loss with respect to x, given grad_out, that with respect to the result and
/// of its shape: the rotation back. The caches receive no gradient.
/// @throws InvalidArgument as rotary_embedding does.
HEED_API Tensor<float> rotary_embedding_backward(FloatView grad_out, FloatView cos, FloatView sin,
                                                 RotaryPairing pairing,
                                                 const RotaryOptions& options = {});
HEED_API Tensor<double> rotary_embedding_backward(DoubleView grad_out, DoubleView cos,
                                                  DoubleView sin, RotaryPairing pairing,
                                                  const RotaryOptions& options = {});

}}  // namespace heed::v0
