/// The configuration of attention layers, and the configurations of textbooks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/attention/linear_attention.h"
#include "heed/attention/mask.h"
#include "heed/attention/relative_position.h"
#include "heed/attention/rotary.h"
#include "heed/attention/select_blocks.h"
#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace nn {

/// A dropout and its name; without a name there is none.
struct NamedDropout {
  std::string name = {};
  double p = 0;
};

/// Rotary positions: queries start at AttendOptions::query_offset, keys at 0; see rotary.h.
struct RotaryConfig {
  /// The number of positions; 0: no rotary positions.
  std::int64_t max_len = 0;
  /// The number of rotated dimensions of each head, the first ones. Even; 0: all.
  std::int64_t rotary_dim = 0;
  double base = 10000;
  /// The dimensions that make a pair. Required where max_len is not 0.
  std::optional<RotaryPairing> pairing = std::nullopt;
  /// The scaling of the frequencies; see rotary_frequencies().
  RotaryScaling scaling = {};
  /// The sequence length for which the frequencies are computed, where the scaling depends on it;
  /// 0: max_len. It does not change as a sequence grows, so that all keys of a sequence are rotated
  /// by the same frequencies.
  std::int64_t scaled_length = 0;
};

/// The configuration of an attention layer.
struct AttentionConfig {
  std::string class_name = "MultiHeadAttention";
  std::int64_t embed_dim = 0;
  std::int64_t num_heads = 1;
  /// Query head h reads key/value head h / (num_heads / num_kv_heads); 0: as many as num_heads.
  /// Source: Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models", 2023.
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;  ///< 0: embed_dim / num_heads
  /// The names of the projections of query, key and value, or one name: one projection computes all
  /// three, concatenated.
  std::vector<std::string> inputs = {"q_proj", "k_proj", "v_proj"};
  std::string out = "out_proj";  ///< the name of the output projection; empty: none
  bool bias = true;              ///< of every projection
  std::string core = {};         ///< the name of a ScaledDotProductAttention() part; empty: none
  NamedDropout weight_dropout = {};
  NamedDropout out_dropout = {};
  /// The mask that the layer combines with every call's mask by &, for example causal(). Tensors
  /// that it refers to must outlive the layer.
  Mask mask = {};
  /// If given, each query sees only the blocks of keys that select_blocks() selects for it, from
  /// queries and keys after rotation. The selection has no gradient.
  std::optional<SelectBlocksOptions> selected_blocks = std::nullopt;
  /// If given, weights are products of features instead of a softmax: feature_map_attention(),
  /// whose options include the causal mask. Such a layer has no other options of scores: no mask,
  /// selection, scale, softcap, slopes, tables, dropout of weights or returned weights.
  std::optional<FeatureMapOptions> feature_map = std::nullopt;
  std::optional<double> scale = std::nullopt;  ///< of the scores; not given: 1/√head_dim
  double softcap = 0;                          ///< of the scores; 0: none
  /// If true, scores have the penalty of heed::alibi_slopes(num_heads).
  bool alibi = false;
  /// A learned number per head and bucket that is added to scores, parameter "relative_bias"
  /// [num_heads, buckets]; see BasicAttentionOptions::relative_bias.
  std::optional<RelativeBuckets> relative_bias = std::nullopt;
  /// Learned vectors for keys and values, parameters "relative_key" and "relative_value"
  /// [buckets, head_dim], which all heads share; see BasicAttentionOptions::relative_vectors.
  std::optional<RelativeBuckets> relative_vectors = std::nullopt;
  RotaryConfig rotary = {};
  /// If true, returned weights have an axis for the heads; without it there can be only one head.
  bool has_head_axis = true;
};

/// Parts qkv_proj and out_proj, without biases; dropout on the output.
HEED_API AttentionConfig fused_projection(std::int64_t embed_dim, std::int64_t num_heads,
                                          double dropout = 0.1);
/// Parts q_proj, k_proj, v_proj, out_proj and attention; dropout on the weights.
HEED_API AttentionConfig separate_projections(std::int64_t embed_dim, std::int64_t num_heads,
                                              double dropout = 0);
/// Parts W_q, W_k, W_v and W_o; dropout on the weights. For self- and cross-attention.
HEED_API AttentionConfig cross_projections(std::int64_t d_model, std::int64_t num_heads,
                                           double dropout = 0.1);
/// Parts q_proj, k_proj, v_proj and out_proj; dropout on the weights, attn_dropout, and on the
/// output, out_dropout.
HEED_API AttentionConfig twice_dropped(std::int64_t d_model, std::int64_t num_heads,
                                       double dropout = 0.1);

/// The configuration with its default numbers filled in: head_dim, num_kv_heads, and the rotary_dim
/// and scaled_length of rotary.
/// @throws InvalidArgument when a size is not positive, embed_dim is not a multiple of num_heads
/// and no head_dim is given, num_heads is not a multiple of num_kv_heads, `inputs` has neither one
/// nor three names, several heads have no axis, rotary_dim is odd or greater than head_dim, the
/// rotary pairing is missing, its max_len or scaled_length is negative, or a feature_map is
/// combined with an option that it excludes.
HEED_API AttentionConfig resolved(const AttentionConfig& config);

}}}  // namespace heed::v0::nn
