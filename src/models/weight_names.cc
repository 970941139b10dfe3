#include "models/weight_reader.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr std::string_view kOtherTask = "the head of another task, behind the hidden states";

constexpr HarmlessTensor kBertHarmless[] = {
    {"embeddings.position_ids", "the numbers 0, 1, 2, …"},
    {"pooler.*", "made of the first hidden state for classifiers; texts are pooled otherwise"},
    {"cls.*", kOtherTask},
    {"classifier.*", kOtherTask},
    {"qa_outputs.*", kOtherTask}};

constexpr HarmlessTensor kGpt2Harmless[] = {
    {"*.attn.bias", "the causal mask"},
    {"*.attn.masked_bias", "what masked scores are replaced by"},
    {"multiple_choice_head.*", kOtherTask},
    {"score.*", kOtherTask},
    {"classifier.*", kOtherTask},
    {"qa_outputs.*", kOtherTask}};

constexpr HarmlessTensor kLlamaHarmless[] = {
    {"*rotary_emb.inv_freq", "frequencies, computed as the configuration says"},
    {"score.*", kOtherTask},
    {"classifier.*", kOtherTask},
    {"qa_outputs.*", kOtherTask}};

constexpr HarmlessTensor kLlamaInGgufHarmless[] = {
    {"rope_freqs.weight", "read with the configuration"}};

constexpr WeightNames kBertInFolder{.prefix = "bert.",
                                    .tokens = "embeddings.word_embeddings",
                                    .positions = "embeddings.position_embeddings",
                                    .token_types = "embeddings.token_type_embeddings",
                                    .embedding_norm = "embeddings.LayerNorm",
                                    .final_norm = "",
                                    .head = "",
                                    .layer = "encoder.layer.",
                                    .attention_norm = "attention.output.LayerNorm",
                                    .query = "attention.self.query",
                                    .key = "attention.self.key",
                                    .value = "attention.self.value",
                                    .fused = "",
                                    .out = "attention.output.dense",
                                    .mlp_norm = "output.LayerNorm",
                                    .gate = "",
                                    .up = "intermediate.dense",
                                    .down = "output.dense",
                                    .harmless = kBertHarmless};

constexpr WeightNames kGpt2InFolder{.prefix = "transformer.",
                                    .tokens = "wte",
                                    .positions = "wpe",
                                    .token_types = "",
                                    .embedding_norm = "",
                                    .final_norm = "ln_f",
                                    .head = "lm_head",
                                    .layer = "h.",
                                    .attention_norm = "ln_1",
                                    .query = "",
                                    .key = "",
                                    .value = "",
                                    .fused = "attn.c_attn",
                                    .out = "attn.c_proj",
                                    .mlp_norm = "ln_2",
                                    .gate = "",
                                    .up = "mlp.c_fc",
                                    .down = "mlp.c_proj",
                                    .is_transposed = true,
                                    .harmless = kGpt2Harmless};

constexpr WeightNames kLlamaInFolder{.prefix = "model.",
                                     .tokens = "embed_tokens",
                                     .positions = "",
                                     .token_types = "",
                                     .embedding_norm = "",
                                     .final_norm = "norm",
                                     .head = "lm_head",
                                     .layer = "layers.",
                                     .attention_norm = "input_layernorm",
                                     .query = "self_attn.q_proj",
                                     .key = "self_attn.k_proj",
                                     .value = "self_attn.v_proj",
                                     .fused = "",
                                     .out = "self_attn.o_proj",
                                     .mlp_norm = "post_attention_layernorm",
                                     .gate = "mlp.gate_proj",
                                     .up = "mlp.up_proj",
                                     .down = "mlp.down_proj",
                                     .harmless = kLlamaHarmless};

constexpr WeightNames kLlamaInGguf{.prefix = "",
                                   .tokens = "token_embd",
                                   .positions = "",
                                   .token_types = "",
                                   .embedding_norm = "",
                                   .final_norm = "output_norm",
                                   .head = "output",
                                   .layer = "blk.",
                                   .attention_norm = "attn_norm",
                                   .query = "attn_q",
                                   .key = "attn_k",
                                   .value = "attn_v",
                                   .fused = "",
                                   .out = "attn_output",
                                   .mlp_norm = "ffn_norm",
                                   .gate = "ffn_gate",
                                   .up = "ffn_up",
                                   .down = "ffn_down",
                                   .harmless = kLlamaInGgufHarmless};

constexpr WeightNames gpt2_in_gguf() {
  WeightNames names = kLlamaInGguf;
  names.positions = "position_embd";
  names.query = names.key = names.value = "";
  names.fused = "attn_qkv";
  names.gate = "";
  names.harmless = {};
  return names;
}

constexpr WeightNames bert_in_gguf() {
  WeightNames names = kLlamaInGguf;
  names.positions = "position_embd";
  names.token_types = "token_types";
  names.embedding_norm = "token_embd_norm";
  names.final_norm = "";
  names.head = "";
  names.attention_norm = "attn_output_norm";
  names.mlp_norm = "layer_output_norm";
  names.gate = "";
  names.harmless = {};
  return names;
}

constexpr WeightNames kGpt2InGguf = gpt2_in_gguf();
constexpr WeightNames kBertInGguf = bert_in_gguf();

}  // namespace

const WeightNames& names_in_folder(Family family) {
  switch (family) {
    case Family::kBert:
      return kBertInFolder;
    case Family::kGpt2:
      return kGpt2InFolder;
    case Family::kLlama:
      break;
  }
  return kLlamaInFolder;
}

const WeightNames& names_in_gguf(Family family) {
  switch (family) {
    case Family::kBert:
      return kBertInGguf;
    case Family::kGpt2:
      return kGpt2InGguf;
    case Family::kLlama:
      break;
  }
  return kLlamaInGguf;
}

}}}  // namespace heed::v0::models
