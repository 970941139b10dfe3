// The names of weights in GGUF files, family by family.
#include "models/weight_reader.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr HarmlessTensor kPhi3InGgufHarmless[] = {
    {"rope_factors_long.weight", "read with the configuration"},
    {"rope_factors_short.weight", "read with the configuration"}};

constexpr HarmlessTensor kLlamaInGgufHarmless[] = {
    {"rope_freqs.weight", "read with the configuration"}};

constexpr WeightNames kLlamaInGguf{.prefix = "",
                                   .tokens = "token_embd",
                                   .positions = "",
                                   .token_types = "",
                                   .embedding_norm = "",
                                   .final_norm = "output_norm",
                                   .head = "output",
                                   .layer = "blk.",
                                   .attention_norms = {.before = "attn_norm"},
                                   .query = "attn_q",
                                   .key = "attn_k",
                                   .value = "attn_v",
                                   .fused = "",
                                   .query_norm = "attn_q_norm",
                                   .key_norm = "attn_k_norm",
                                   .out = "attn_output",
                                   .mlp_norms = {.before = "ffn_norm"},
                                   .gate = "ffn_gate",
                                   .up = "ffn_up",
                                   .down = "ffn_down",
                                   .harmless = kLlamaInGgufHarmless};

constexpr WeightNames experts_in_gguf() {
  WeightNames names = kLlamaInGguf;
  names.router = "ffn_gate_inp";
  names.expert_gate = "ffn_gate_exps";
  names.expert_up = "ffn_up_exps";
  names.expert_down = "ffn_down_exps";
  return names;
}

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
  names.attention_norms = {.after_sum = "attn_output_norm"};
  names.mlp_norms = {.after_sum = "layer_output_norm"};
  names.gate = "";
  names.harmless = {};
  return names;
}

constexpr WeightNames gemma2_in_gguf() {
  WeightNames names = kLlamaInGguf;
  names.attention_norms = {.before = "attn_norm", .after = "post_attention_norm"};
  names.mlp_norms = {.before = "ffn_norm", .after = "post_ffw_norm"};
  return names;
}

constexpr WeightNames olmo2_in_gguf() {
  WeightNames names = kLlamaInGguf;
  names.attention_norms = {.after = "post_attention_norm"};
  names.mlp_norms = {.after = "post_ffw_norm"};
  return names;
}

// Without a gate, and with one product for query, key and value.
constexpr WeightNames neox_in_gguf() {
  WeightNames names = kLlamaInGguf;
  names.query = names.key = names.value = "";
  names.fused = "attn_qkv";
  names.gate = "";
  return names;
}

// Files have one product for query, key and value, or three.
constexpr WeightNames phi_in_gguf() {
  WeightNames names = kLlamaInGguf;
  names.fused = "attn_qkv";
  names.gate = "";
  return names;
}

constexpr WeightNames phi3_in_gguf() {
  WeightNames names = neox_in_gguf();
  names.is_gate_in_up = true;
  names.harmless = kPhi3InGgufHarmless;
  return names;
}

constexpr WeightNames starcoder2_in_gguf() {
  WeightNames names = kLlamaInGguf;
  names.gate = "";
  return names;
}

constexpr WeightNames bloom_in_gguf() {
  WeightNames names = neox_in_gguf();
  names.embedding_norm = "token_embd_norm";
  return names;
}

// Falcon 40B.
constexpr WeightNames falcon_with_two_norms_in_gguf() {
  WeightNames names = neox_in_gguf();
  names.attention_norms = {.before = "attn_norm_2"};
  names.mlp_norms = {.before = "attn_norm"};
  return names;
}

constexpr FamilyNames kInGguf[] = {
    {Family::kBert, bert_in_gguf()},
    {Family::kRoberta, bert_in_gguf()},
    {Family::kDistilBert, bert_in_gguf()},
    {Family::kGpt2, gpt2_in_gguf()},
    {Family::kLlama, kLlamaInGguf},
    {Family::kQwen3, kLlamaInGguf},
    {Family::kOlmo2, olmo2_in_gguf()},
    {Family::kSmolLm3, kLlamaInGguf},
    {Family::kGemma2, gemma2_in_gguf()},
    {Family::kGemma3, gemma2_in_gguf()},
    {Family::kGptNeoX, neox_in_gguf()},
    {Family::kBloom, bloom_in_gguf()},
    {Family::kFalcon, falcon_with_two_norms_in_gguf(), PartOrder::kParallel},
    {Family::kFalcon, neox_in_gguf()},
    {Family::kPhi, phi_in_gguf()},
    {Family::kPhi3, phi3_in_gguf()},
    {Family::kGranite, kLlamaInGguf},
    {Family::kStableLm, kLlamaInGguf},
    {Family::kStarCoder2, starcoder2_in_gguf()},
    {Family::kMixtral, experts_in_gguf()},
    {Family::kQwen3Moe, experts_in_gguf()},
    {Family::kCohere, kLlamaInGguf}};

}  // namespace

const WeightNames& names_in_gguf(const ModelConfig& config) { return names_of(kInGguf, config); }

}}}  // namespace heed::v0::models
