#include <algorithm>
#include <iterator>
#include <optional>

#include "models/encoder_decoder_names.h"
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

constexpr HarmlessTensor kPhi3InGgufHarmless[] = {
    {"rope_factors_long.weight", "read with the configuration"},
    {"rope_factors_short.weight", "read with the configuration"}};

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

constexpr HarmlessTensor kRobertaHarmless[] = {
    {"embeddings.position_ids", "the numbers 0, 1, 2, …"},
    {"pooler.*", "made of the first hidden state for classifiers; texts are pooled otherwise"},
    {"lm_head.*", kOtherTask},
    {"classifier.*", kOtherTask},
    {"qa_outputs.*", kOtherTask}};

constexpr HarmlessTensor kDistilBertHarmless[] = {{"embeddings.position_ids", "0, 1, 2, …"},
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

constexpr WeightNames with_norms(WeightNames names, std::string_view attention,
                                 std::string_view mlp) {
  names.attention_norms = {.before = attention};
  names.mlp_norms = {.before = mlp};
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

// heed reads these families from folders alone.
constexpr WeightNames kNotInGguf = {};

struct FamilyNames {
  Family family;
  WeightNames in_folder;
  WeightNames in_gguf = {};
  std::optional<PartOrder> part_order = std::nullopt;  // if the names are those of this order only
  std::optional<bool> is_encoder = std::nullopt;       // of an encoder-decoder, the half
};

constexpr FamilyNames kFamilies[] = {
    {Family::kBert, kBertInFolder, bert_in_gguf()},
    // Files of these families have the architecture "bert" in GGUF.
    {Family::kRoberta, roberta_in_folder(), bert_in_gguf()},
    {Family::kDistilBert, distilbert_in_folder(), bert_in_gguf()},
    {Family::kGpt2, kGpt2InFolder, gpt2_in_gguf()},
    {Family::kLlama, kLlamaInFolder, kLlamaInGguf},
    {Family::kQwen3, kLlamaInFolder, kLlamaInGguf},
    {Family::kOlmo2, olmo2_in_folder(), olmo2_in_gguf()},
    {Family::kSmolLm3, kLlamaInFolder, kLlamaInGguf},
    {Family::kGemma2, gemma2_in_folder(), gemma2_in_gguf()},
    {Family::kGemma3, gemma2_in_folder(), gemma2_in_gguf()},
    {Family::kGptNeoX, neox_in_folder(), neox_in_gguf()},
    {Family::kGptNeo, gpt_neo_in_folder(), kNotInGguf},
    {Family::kGptJ, gptj_in_folder(), kNotInGguf},
    {Family::kOpt, opt_in_folder(), kNotInGguf},
    {Family::kBloom, bloom_in_folder(), bloom_in_gguf()},
    {Family::kFalcon, with_norms(falcon_in_folder(), "ln_attn", "ln_mlp"),
     with_norms(neox_in_gguf(), "attn_norm_2", "attn_norm"), PartOrder::kParallel},
    {Family::kFalcon, falcon_in_folder(), neox_in_gguf()},
    {Family::kPhi, phi_in_folder(), phi_in_gguf()},
    {Family::kPhi3, phi3_in_folder(), phi3_in_gguf()},
    {Family::kGranite, kLlamaInFolder, kLlamaInGguf},
    {Family::kStableLm, stablelm_in_folder(), kLlamaInGguf},
    {Family::kStarCoder2, starcoder2_in_folder(), starcoder2_in_gguf()},
    {Family::kCohere, kLlamaInFolder, kLlamaInGguf},
    {.family = Family::kT5, .in_folder = kT5Encoder, .is_encoder = true},
    {.family = Family::kT5, .in_folder = t5_decoder(), .is_encoder = false},
    {.family = Family::kT5Gated,
     .in_folder =
         t5_gated(kT5Encoder, "layer.1.DenseReluDense.wi_0", "layer.1.DenseReluDense.wi_1"),
     .is_encoder = true},
    {.family = Family::kT5Gated,
     .in_folder =
         t5_gated(t5_decoder(), "layer.2.DenseReluDense.wi_0", "layer.2.DenseReluDense.wi_1"),
     .is_encoder = false},
    {.family = Family::kBart, .in_folder = kBartEncoder, .is_encoder = true},
    {.family = Family::kBart, .in_folder = bart_decoder(), .is_encoder = false},
    {.family = Family::kMarian, .in_folder = marian_of(kBartEncoder), .is_encoder = true},
    {.family = Family::kMarian, .in_folder = marian_of(bart_decoder()), .is_encoder = false}};

const FamilyNames& names_of(const ModelConfig& config) {
  return *std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const FamilyNames& names) {
    return names.family == config.family &&
           names.part_order.value_or(config.part_order) == config.part_order &&
           names.is_encoder.value_or(config.sees_later_tokens) == config.sees_later_tokens;
  });
}

}  // namespace

const WeightNames& names_in_folder(const ModelConfig& config) { return names_of(config).in_folder; }

const WeightNames& names_in_gguf(const ModelConfig& config) { return names_of(config).in_gguf; }

}}}  // namespace heed::v0::models
