/// What distinguishes one attention layer from another, and the configurations of the textbooks.
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

/// A dropout and what it is called; without a name there is none.
struct NamedDropout {
  std::string name = {};
  double p = 0;
};

/// Rotary positions: queries from AttendOptions::query_offset on, keys from 0; see rotary.h.
struct RotaryConfig {
  /// How many positions there are; 0: none is encoded.
  std::int64_t max_len = 0;
  /// How many dimensions of each head are turned, the first ones. Even; 0: all.
  std::int64_t rotary_dim = 0;
  double base = 10000;
  /// Which dimensions make a pair. Has to be named where max_len is not 0.
  std::optional<RotaryPairing> pairing = std::nullopt;
  /// How the frequencies are scaled; see rotary_frequencies().
  RotaryScaling scaling = {};
  /// How long the sequences are for which the frequencies are made, where the scaling depends on
  /// it; 0: max_len. It does not change as a sequence grows, so that keys in a cache and keys that
  /// follow are turned by the same frequencies.
  std::int64_t scaled_length = 0;
};

/// What distinguishes one attention layer from another.
struct AttentionConfig {
  std::string class_name = "MultiHeadAttention";
  std::int64_t embed_dim = 0;
  std::int64_t num_heads = 1;
  /// Query head h reads key/value head h / (num_heads / num_kv_heads); 0: as many as num_heads.
  /// Source: Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models", 2023.
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;  ///< 0: embed_dim / num_heads
  /// The projections of query, key and value, or one name: one projection gives all three, side by
  /// side.
  std::vector<std::string> inputs = {"q_proj", "k_proj", "v_proj"};
  std::string out = "out_proj";  ///< the projection of the output; empty: none
  bool bias = true;              ///< of every projection
  std::string core = {};         ///< the name of a part ScaledDotProductAttention(), if it has one
  NamedDropout weight_dropout = {};
  NamedDropout out_dropout = {};
  /// What the layer adds to every call's mask: causal(), a sliding_window(), both by &. What it
  /// refers to must live as long as the layer.
  Mask mask = {};
  /// Besides, each query sees only the blocks of keys that select_blocks() chooses for it, of
  /// queries and keys as they are turned. What is chosen is a constant to gradients.
  std::optional<SelectBlocksOptions> selected_blocks = std::nullopt;
  /// Weights are products of features instead of a softmax: feature_map_attention(), whose options
  /// say whether later keys are hidden. Nothing else can then be asked of the scores: no mask,
  /// selection, scale, softcap, slopes, tables, dropout of weights, weights to look at.
  std::optional<FeatureMapOptions> feature_map = std::nullopt;
  std::optional<double> scale = std::nullopt;  ///< of the scores; not given: 1/√head_dim
  double softcap = 0;                          ///< of the scores; 0: none
  /// Whether scores fall with the distance, by heed::alibi_slopes(num_heads).
  bool alibi = false;
  /// A learned number per head and bucket that is added to scores, parameter "relative_bias"
  /// [num_heads, buckets]; see BasicAttentionOptions::relative_bias.
  std::optional<RelativeBuckets> relative_bias = std::nullopt;
  /// Learned vectors for keys and values, parameters "relative_key" and "relative_value"
  /// [buckets, head_dim], which all heads share; see BasicAttentionOptions::relative_vectors.
  std::optional<RelativeBuckets> relative_vectors = std::nullopt;
  RotaryConfig rotary = {};
  /// Whether all weights have an axis for the heads; without it there can be only one head.
  bool has_head_axis = true;
};

/// qkv_proj, out_proj, without biases; dropout on the output.
HEED_API AttentionConfig fused_projection(std::int64_t embed_dim, std::int64_t num_heads,
                                          double dropout = 0.1);
/// q_proj, k_proj, v_proj, out_proj, attention; dropout on the weights.
HEED_API AttentionConfig separate_projections(std::int64_t embed_dim, std::int64_t num_heads,
                                              double dropout = 0);
/// W_q, W_k, W_v, W_o; dropout on the weights. For self- and cross-attention.
HEED_API AttentionConfig cross_projections(std::int64_t d_model, std::int64_t num_heads,
                                           double dropout = 0.1);
/// q_proj, k_proj, v_proj, out_proj; dropout on the weights, attn_dropout, and on the output,
/// out_dropout.
HEED_API AttentionConfig twice_dropped(std::int64_t d_model, std::int64_t num_heads,
                                       double dropout = 0.1);

/// The configuration with the numbers that it leaves to others: head_dim, num_kv_heads, and the
/// rotary_dim and scaled_length of rotary.
/// @throws InvalidArgument when a size is not positive, embed_dim is not a multiple of num_heads
/// and no head_dim is given, num_heads is no multiple of num_kv_heads, `inputs` holds neither one
/// nor three names, several heads have no axis, rotary_dim is odd or greater than head_dim, the
/// rotary pairing is not named, its max_len or scaled_length is negative, or a feature_map is
/// joined by something that it cannot have.
HEED_API AttentionConfig resolved(const AttentionConfig& config);

}}}  // namespace heed::v0::nn
