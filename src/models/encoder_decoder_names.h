// The names of the weights of encoder-decoders in folders. folder_names.cc lists them.
#pragma once

#include <string_view>

#include "models/weight_reader.h"

namespace heed { inline namespace v0 { namespace models {

inline constexpr HarmlessTensor kEncoderDecoderHarmless[] = {
    {"encoder.embed_tokens.weight", "the same as the shared embeddings"},
    {"decoder.embed_tokens.weight", "the same as the shared embeddings"},
    {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
     "of early files; attention to a source has no bias"},
    {"classification_head.*", "the head of another task, behind the hidden states"},
    {"qa_outputs.*", "the head of another task, behind the hidden states"}};

inline constexpr HarmlessTensor kMarianHarmless[] = {
    {"encoder.embed_tokens.weight", "the same as the shared embeddings"},
    {"decoder.embed_tokens.weight", "the same as the shared embeddings"},
    {"encoder.embed_positions.weight", "sines and cosines, which are computed"},
    {"decoder.embed_positions.weight", "sines and cosines, which are computed"}};

inline constexpr WeightNames kT5Encoder{
    .prefix = "",
    .tokens = "shared",
    .positions = "",
    .token_types = "",
    .position_bias = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
    .embedding_norm = "",
    .final_norm = "encoder.final_layer_norm",
    .head = "",
    .layer = "encoder.block.",
    .attention_norms = {.before = "layer.0.layer_norm"},
    .query = "layer.0.SelfAttention.q",
    .key = "layer.0.SelfAttention.k",
    .value = "layer.0.SelfAttention.v",
    .fused = "",
    .out = "layer.0.SelfAttention.o",
    .mlp_norms = {.before = "layer.1.layer_norm"},
    .gate = "",
    .up = "layer.1.DenseReluDense.wi",
    .down = "layer.1.DenseReluDense.wo",
    .harmless = kEncoderDecoderHarmless};

constexpr WeightNames t5_decoder() {
  WeightNames names = kT5Encoder;
  names.position_bias = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias";
  names.final_norm = "decoder.final_layer_norm";
  names.head = "lm_head";
  names.layer = "decoder.block.";
  names.cross_norms = {.before = "layer.1.layer_norm"};
  names.cross_query = "layer.1.EncDecAttention.q";
  names.cross_key = "layer.1.EncDecAttention.k";
  names.cross_value = "layer.1.EncDecAttention.v";
  names.cross_out = "layer.1.EncDecAttention.o";
  names.mlp_norms = {.before = "layer.2.layer_norm"};
  names.up = "layer.2.DenseReluDense.wi";
  names.down = "layer.2.DenseReluDense.wo";
  return names;
}

constexpr WeightNames t5_gated_encoder() {
  WeightNames names = kT5Encoder;
  names.gate = "layer.1.DenseReluDense.wi_0";
  names.up = "layer.1.DenseReluDense.wi_1";
  return names;
}

constexpr WeightNames t5_gated_decoder() {
  WeightNames names = t5_decoder();
  names.gate = "layer.2.DenseReluDense.wi_0";
  names.up = "layer.2.DenseReluDense.wi_1";
  return names;
}

inline constexpr WeightNames kBartEncoder{.prefix = "model.",
                                          .tokens = "shared",
                                          .positions = "encoder.embed_positions",
                                          .token_types = "",
                                          .embedding_norm = "encoder.layernorm_embedding",
                                          .final_norm = "",
                                          .head = "",
                                          .layer = "encoder.layers.",
                                          .attention_norms = {.after_sum = "self_attn_layer_norm"},
                                          .query = "self_attn.q_proj",
                                          .key = "self_attn.k_proj",
                                          .value = "self_attn.v_proj",
                                          .fused = "",
                                          .out = "self_attn.out_proj",
                                          .mlp_norms = {.after_sum = "final_layer_norm"},
                                          .gate = "",
                                          .up = "fc1",
                                          .down = "fc2",
                                          .harmless = kEncoderDecoderHarmless};

constexpr WeightNames bart_decoder() {
  WeightNames names = kBartEncoder;
  names.positions = "decoder.embed_positions";
  names.embedding_norm = "decoder.layernorm_embedding";
  names.head = "lm_head";
  names.head_bias = "final_logits_bias";
  names.layer = "decoder.layers.";
  names.cross_norms = {.after_sum = "encoder_attn_layer_norm"};
  names.cross_query = "encoder_attn.q_proj";
  names.cross_key = "encoder_attn.k_proj";
  names.cross_value = "encoder_attn.v_proj";
  names.cross_out = "encoder_attn.out_proj";
  return names;
}

constexpr WeightNames marian_of(WeightNames names) {
  names.positions = "";
  names.embedding_norm = "";
  names.harmless = kMarianHarmless;
  return names;
}

}}}  // namespace heed::v0::models
