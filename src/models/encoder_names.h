// The names of the weights of encoders in folders. folder_names.cc lists them.
#pragma once

#include <string_view>

#include "models/weight_reader.h"

namespace heed { inline namespace v0 { namespace models {

inline constexpr std::string_view kOtherTask = "the head of another task, behind the hidden states";

inline constexpr HarmlessTensor kBertHarmless[] = {
    {"embeddings.position_ids", "the numbers 0, 1, 2, …"},
    {"pooler.*", "made of the first hidden state for classifiers; texts are pooled otherwise"},
    {"cls.*", kOtherTask},
    {"classifier.*", kOtherTask},
    {"qa_outputs.*", kOtherTask}};

inline constexpr WeightNames kBertInFolder{
    .prefix = "bert.",
    .tokens = "embeddings.word_embeddings",
    .positions = "embeddings.position_embeddings",
    .token_types = "embeddings.token_type_embeddings",
    .embedding_norm = "embeddings.LayerNorm",
    .final_norm = "",
    .head = "",
    .layer = "encoder.layer.",
    .attention_norms = {.after_sum = "attention.output.LayerNorm"},
    .query = "attention.self.query",
    .key = "attention.self.key",
    .value = "attention.self.value",
    .fused = "",
    .out = "attention.output.dense",
    .mlp_norms = {.after_sum = "output.LayerNorm"},
    .gate = "",
    .up = "intermediate.dense",
    .down = "output.dense",
    .harmless = kBertHarmless};

inline constexpr HarmlessTensor kRobertaHarmless[] = {
    {"embeddings.position_ids", "the numbers 0, 1, 2, …"},
    {"pooler.*", "made of the first hidden state for classifiers; texts are pooled otherwise"},
    {"lm_head.*", kOtherTask},
    {"classifier.*", kOtherTask},
    {"qa_outputs.*", kOtherTask}};

inline constexpr HarmlessTensor kDistilBertHarmless[] = {{"embeddings.position_ids", "0, 1, 2, …"},
                                                         {"vocab_*", kOtherTask},
                                                         {"pre_classifier.*", kOtherTask},
                                                         {"classifier.*", kOtherTask},
                                                         {"qa_outputs.*", kOtherTask}};

constexpr WeightNames roberta_in_folder() {
  WeightNames names = kBertInFolder;
  names.prefix = "roberta.";
  names.harmless = kRobertaHarmless;
  return names;
}

constexpr WeightNames distilbert_in_folder() {
  WeightNames names = kBertInFolder;
  names.prefix = "distilbert.";
  names.token_types = "";
  names.layer = "transformer.layer.";
  names.attention_norms = {.after_sum = "sa_layer_norm"};
  names.query = "attention.q_lin";
  names.key = "attention.k_lin";
  names.value = "attention.v_lin";
  names.out = "attention.out_lin";
  names.mlp_norms = {.after_sum = "output_layer_norm"};
  names.up = "ffn.lin1";
  names.down = "ffn.lin2";
  names.harmless = kDistilBertHarmless;
  return names;
}

inline constexpr HarmlessTensor kMpnetHarmless[] = {
    {"embeddings.position_ids", "the numbers 0, 1, 2, …"},
    {"pooler.*", "made of the first hidden state for classifiers; texts are pooled otherwise"},
    {"lm_head.*", kOtherTask},
    {"classifier.*", kOtherTask},
    {"qa_outputs.*", kOtherTask}};

inline constexpr HarmlessTensor kElectraHarmless[] = {{"embeddings.position_ids", "0, 1, 2, …"},
                                                      {"discriminator_predictions.*", kOtherTask},
                                                      {"generator_predictions.*", kOtherTask},
                                                      {"generator_lm_head.*", kOtherTask},
                                                      {"sequence_summary.*", kOtherTask},
                                                      {"classifier.*", kOtherTask},
                                                      {"qa_outputs.*", kOtherTask}};

inline constexpr HarmlessTensor kAlbertHarmless[] = {
    {"embeddings.position_ids", "the numbers 0, 1, 2, …"},
    {"pooler.*", "made of the first hidden state for classifiers; texts are pooled otherwise"},
    {"predictions.*", kOtherTask},
    {"sop_classifier.*", kOtherTask},
    {"classifier.*", kOtherTask},
    {"qa_outputs.*", kOtherTask}};

inline constexpr HarmlessTensor kModernBertHarmless[] = {
    {"head.*", kOtherTask}, {"decoder.*", kOtherTask}, {"classifier.*", kOtherTask}};

constexpr WeightNames mpnet_in_folder() {
  WeightNames names = kBertInFolder;
  names.prefix = "mpnet.";
  names.token_types = "";
  names.position_bias = "encoder.relative_attention_bias";
  names.attention_norms = {.after_sum = "attention.LayerNorm"};
  names.query = "attention.attn.q";
  names.key = "attention.attn.k";
  names.value = "attention.attn.v";
  names.out = "attention.attn.o";
  names.harmless = kMpnetHarmless;
  return names;
}

constexpr WeightNames electra_in_folder() {
  WeightNames names = kBertInFolder;
  names.prefix = "electra.";
  names.embedding_projection = "embeddings_project";
  names.harmless = kElectraHarmless;
  return names;
}

constexpr WeightNames albert_in_folder() {
  WeightNames names = kBertInFolder;
  names.prefix = "albert.";
  names.embedding_projection = "encoder.embedding_hidden_mapping_in";
  names.layer = "encoder.albert_layer_groups.0.albert_layers.";
  names.attention_norms = {.after_sum = "attention.LayerNorm"};
  names.query = "attention.query";
  names.key = "attention.key";
  names.value = "attention.value";
  names.out = "attention.dense";
  names.mlp_norms = {.after_sum = "full_layer_layer_norm"};
  names.up = "ffn";
  names.down = "ffn_output";
  names.harmless = kAlbertHarmless;
  return names;
}

constexpr WeightNames modernbert_in_folder() {
  WeightNames names = kBertInFolder;
  names.prefix = "model.";
  names.tokens = "embeddings.tok_embeddings";
  names.positions = names.token_types = "";
  names.embedding_norm = "embeddings.norm";
  names.final_norm = "final_norm";
  names.layer = "layers.";
  names.attention_norms = {.before = "attn_norm"};
  names.query = names.key = names.value = "";
  names.fused = "attn.Wqkv";
  names.out = "attn.Wo";
  names.mlp_norms = {.before = "mlp_norm"};
  names.up = "mlp.Wi";
  names.is_gate_in_up = true;
  names.down = "mlp.Wo";
  names.harmless = kModernBertHarmless;
  return names;
}

constexpr WeightNames nomic_bert_in_folder() {
  WeightNames names = kBertInFolder;
  names.prefix = "nomic_bert.";
  names.positions = "";
  names.embedding_norm = "emb_ln";
  names.layer = "encoder.layers.";
  names.attention_norms = {.after_sum = "norm1"};
  names.query = names.key = names.value = "";
  names.fused = "attn.Wqkv";
  names.out = "attn.out_proj";
  names.mlp_norms = {.after_sum = "norm2"};
  names.gate = "mlp.fc12";
  names.up = "mlp.fc11";
  names.down = "mlp.fc2";
  return names;
}

}}}  // namespace heed::v0::models
