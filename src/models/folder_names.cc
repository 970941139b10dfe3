// The names of weights in folders of transformers, family by family.
#include "models/encoder_decoder_names.h"
#include "models/encoder_names.h"
#include "models/weight_reader.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

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

constexpr HarmlessTensor kNeoxHarmless[] = {
    {"*.attention.bias", "the causal mask"},
    {"*.attention.masked_bias", "what masked scores are replaced by"},
    {"*rotary_emb.inv_freq", "frequencies, computed as the configuration says"},
    {"score.*", kOtherTask},
    {"classifier.*", kOtherTask},
    {"qa_outputs.*", kOtherTask}};

constexpr HarmlessTensor kGptNeoHarmless[] = {
    {"*.attn.attention.bias", "the causal mask"},
    {"*.attn.attention.masked_bias", "what masked scores are replaced by"},
    {"score.*", kOtherTask},
    {"classifier.*", kOtherTask},
    {"qa_outputs.*", kOtherTask}};

constexpr WeightNames kGpt2InFolder{.prefix = "transformer.",
                                    .tokens = "wte",
                                    .positions = "wpe",
                                    .token_types = "",
                                    .embedding_norm = "",
                                    .final_norm = "ln_f",
                                    .head = "lm_head",
                                    .layer = "h.",
                                    .attention_norms = {.before = "ln_1"},
                                    .query = "",
                                    .key = "",
                                    .value = "",
                                    .fused = "attn.c_attn",
                                    .out = "attn.c_proj",
                                    .mlp_norms = {.before = "ln_2"},
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
                                     .attention_norms = {.before = "input_layernorm"},
                                     .query = "self_attn.q_proj",
                                     .key = "self_attn.k_proj",
                                     .value = "self_attn.v_proj",
                                     .fused = "",
                                     .query_norm = "self_attn.q_norm",
                                     .key_norm = "self_attn.k_norm",
                                     .out = "self_attn.o_proj",
                                     .mlp_norms = {.before = "post_attention_layernorm"},
                                     .gate = "mlp.gate_proj",
                                     .up = "mlp.up_proj",
                                     .down = "mlp.down_proj",
                                     .harmless = kLlamaHarmless};

constexpr WeightNames olmo2_in_folder() {
  WeightNames names = kLlamaInFolder;
  names.attention_norms = {.after = "post_attention_layernorm"};
  names.mlp_norms = {.after = "post_feedforward_layernorm"};
  return names;
}

// Folders store the weights of norms less 1.
constexpr WeightNames gemma2_in_folder() {
  WeightNames names = kLlamaInFolder;
  names.attention_norms = {.before = "input_layernorm", .after = "post_attention_layernorm"};
  names.mlp_norms = {.before = "pre_feedforward_layernorm", .after = "post_feedforward_layernorm"};
  names.norm_offset = 1;
  return names;
}

constexpr WeightNames neox_in_folder() {
  WeightNames names = kLlamaInFolder;
  names.prefix = "gpt_neox.";
  names.tokens = "embed_in";
  names.final_norm = "final_layer_norm";
  names.head = "embed_out";
  names.query = names.key = names.value = "";
  names.fused = "attention.query_key_value";
  names.is_fused_by_key = true;
  names.out = "attention.dense";
  names.gate = "";
  names.up = "mlp.dense_h_to_4h";
  names.down = "mlp.dense_4h_to_h";
  names.harmless = kNeoxHarmless;
  return names;
}

constexpr WeightNames phi_in_folder() {
  WeightNames names = kLlamaInFolder;
  names.final_norm = "final_layernorm";
  names.out = "self_attn.dense";
  names.gate = "";
  names.up = "mlp.fc1";
  names.down = "mlp.fc2";
  return names;
}

constexpr WeightNames phi3_in_folder() {
  WeightNames names = kLlamaInFolder;
  names.query = names.key = names.value = "";
  names.fused = "self_attn.qkv_proj";
  names.gate = "";
  names.up = "mlp.gate_up_proj";
  names.is_gate_in_up = true;
  return names;
}

constexpr WeightNames mixtral_in_folder() {
  WeightNames names = kLlamaInFolder;
  names.router = "block_sparse_moe.gate";
  names.experts = "block_sparse_moe.experts.";
  names.expert_gate = "w1";
  names.expert_up = "w3";
  names.expert_down = "w2";
  return names;
}

constexpr WeightNames qwen3_moe_in_folder() {
  WeightNames names = kLlamaInFolder;
  names.router = "mlp.gate";
  names.experts = "mlp.experts.";
  names.expert_gate = "gate_proj";
  names.expert_up = "up_proj";
  names.expert_down = "down_proj";
  return names;
}

constexpr WeightNames stablelm_in_folder() {
  WeightNames names = kLlamaInFolder;
  names.query_norm = "self_attn.q_layernorm";
  names.key_norm = "self_attn.k_layernorm";
  return names;
}

constexpr WeightNames starcoder2_in_folder() {
  WeightNames names = kLlamaInFolder;
  names.gate = "";
  names.up = "mlp.c_fc";
  names.down = "mlp.c_proj";
  return names;
}

constexpr WeightNames gpt_neo_in_folder() {
  WeightNames names = kGpt2InFolder;
  names.query = "attn.attention.q_proj";
  names.key = "attn.attention.k_proj";
  names.value = "attn.attention.v_proj";
  names.fused = "";
  names.out = "attn.attention.out_proj";
  names.is_transposed = false;
  names.harmless = kGptNeoHarmless;
  return names;
}

constexpr WeightNames gptj_in_folder() {
  WeightNames names = gpt_neo_in_folder();
  names.positions = "";
  names.query = "attn.q_proj";
  names.key = "attn.k_proj";
  names.value = "attn.v_proj";
  names.out = "attn.out_proj";
  names.up = "mlp.fc_in";
  names.down = "mlp.fc_out";
  names.harmless = kGpt2Harmless;
  return names;
}

constexpr WeightNames opt_in_folder() {
  WeightNames names = kLlamaInFolder;
  names.tokens = "decoder.embed_tokens";
  names.positions = "decoder.embed_positions";
  names.final_norm = "decoder.final_layer_norm";
  names.layer = "decoder.layers.";
  names.attention_norms = {.before = "self_attn_layer_norm"};
  names.out = "self_attn.out_proj";
  names.mlp_norms = {.before = "final_layer_norm"};
  names.gate = "";
  names.up = "fc1";
  names.down = "fc2";
  return names;
}

constexpr WeightNames bloom_in_folder() {
  WeightNames names = neox_in_folder();
  names.prefix = "transformer.";
  names.tokens = "word_embeddings";
  names.embedding_norm = "word_embeddings_layernorm";
  names.final_norm = "ln_f";
  names.head = "lm_head";
  names.layer = "h.";
  names.fused = "self_attention.query_key_value";
  names.out = "self_attention.dense";
  return names;
}

constexpr WeightNames falcon_in_folder() {
  WeightNames names = bloom_in_folder();
  names.embedding_norm = "";
  return names;
}

// Falcon 40B.
constexpr WeightNames falcon_with_two_norms() {
  WeightNames names = falcon_in_folder();
  names.attention_norms = {.before = "ln_attn"};
  names.mlp_norms = {.before = "ln_mlp"};
  return names;
}

constexpr FamilyNames kInFolders[] = {
    {Family::kBert, kBertInFolder},
    {Family::kRoberta, roberta_in_folder()},
    {Family::kDistilBert, distilbert_in_folder()},
    {Family::kMpnet, mpnet_in_folder()},
    {Family::kElectra, electra_in_folder()},
    {Family::kAlbert, albert_in_folder()},
    {Family::kModernBert, modernbert_in_folder()},
    {Family::kNomicBert, nomic_bert_in_folder()},
    {Family::kGpt2, kGpt2InFolder},
    {Family::kLlama, kLlamaInFolder},
    {Family::kQwen3, kLlamaInFolder},
    {Family::kOlmo2, olmo2_in_folder()},
    {Family::kSmolLm3, kLlamaInFolder},
    {Family::kGemma2, gemma2_in_folder()},
    {Family::kGemma3, gemma2_in_folder()},
    {Family::kGptNeoX, neox_in_folder()},
    {Family::kGptNeo, gpt_neo_in_folder()},
    {Family::kGptJ, gptj_in_folder()},
    {Family::kOpt, opt_in_folder()},
    {Family::kBloom, bloom_in_folder()},
    {Family::kFalcon, falcon_with_two_norms(), PartOrder::kParallel},
    {Family::kFalcon, falcon_in_folder()},
    {Family::kPhi, phi_in_folder()},
    {Family::kPhi3, phi3_in_folder()},
    {Family::kGranite, kLlamaInFolder},
    {Family::kStableLm, stablelm_in_folder()},
    {Family::kStarCoder2, starcoder2_in_folder()},
    {Family::kMixtral, mixtral_in_folder()},
    {Family::kQwen3Moe, qwen3_moe_in_folder()},
    {Family::kCohere, kLlamaInFolder},
    {.family = Family::kT5, .names = kT5Encoder, .is_encoder = true},
    {.family = Family::kT5, .names = t5_decoder(), .is_encoder = false},
    {.family = Family::kT5Gated, .names = t5_gated_encoder(), .is_encoder = true},
    {.family = Family::kT5Gated, .names = t5_gated_decoder(), .is_encoder = false},
    {.family = Family::kBart, .names = kBartEncoder, .is_encoder = true},
    {.family = Family::kBart, .names = bart_decoder(), .is_encoder = false},
    {.family = Family::kMarian, .names = marian_of(kBartEncoder), .is_encoder = true},
    {.family = Family::kMarian, .names = marian_of(bart_decoder()), .is_encoder = false}};

}  // namespace

const WeightNames& names_in_folder(const ModelConfig& config) {
  return names_of(kInFolders, config);
}

}}}  // namespace heed::v0::models
