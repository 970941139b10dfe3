#include "support/tiny_model.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <variant>

#include "heed/io/safetensors.h"
#include "support/tensors.h"

namespace heed::testing_support {

namespace {

using models::Family;

constexpr std::int64_t kVocabSize = 40;
constexpr std::int64_t kHidden = 24;
constexpr std::int64_t kWidth = 16;    // of all query heads of the Llama
constexpr std::int64_t kKvWidth = 8;   // of its key heads
constexpr std::int64_t kBetween = 36;  // in feed-forward layers
constexpr std::int64_t kPositions = 64;
constexpr int kNumLayers = 2;

// Weights by name, each drawn with its number as seed.
class Weights {
 public:
  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    Tensor<float> drawn = normal<float>({rows, columns}, seed_++);
    for (float& element : drawn.elements()) element *= 0.3F;
    tensors_[name + ".weight"] = std::move(drawn);
  }
  void bias(const std::string& name, std::int64_t size) {
    tensors_[name + ".bias"] = normal<float>({size}, seed_++);
  }
  void norm(const std::string& name, bool has_bias) {
    tensors_[name + ".weight"] = normal<float>({kHidden}, seed_++);
    if (has_bias) bias(name, kHidden);
  }
  void linear(const std::string& name, std::int64_t rows, std::int64_t columns) {
    matrix(name, rows, columns);
    bias(name, rows);
  }
  // [columns, rows], as GPT-2 stores layers.
  void transposed_linear(const std::string& name, std::int64_t rows, std::int64_t columns) {
    matrix(name, columns, rows);
    bias(name, rows);
  }
  void save(const std::filesystem::path& path) const {
    std::map<std::string, AnyView> views;
    for (const auto& [name, tensor] : tensors_) views.emplace(name, tensor.view());
    write_safetensors(path, views);
  }

 private:
  std::map<std::string, Tensor<float>> tensors_;
  std::uint32_t seed_ = 1;
};

void draw_bert(Weights& weights) {
  weights.matrix("embeddings.word_embeddings", kVocabSize, kHidden);
  weights.matrix("embeddings.position_embeddings", kPositions, kHidden);
  weights.matrix("embeddings.token_type_embeddings", 2, kHidden);
  weights.norm("embeddings.LayerNorm", true);
  for (int i = 0; i < kNumLayers; ++i) {
    const std::string layer = fmt::format("encoder.layer.{}.", i);
    for (const char* name : {"query", "key", "value"}) {
      weights.linear(layer + "attention.self." + name, kHidden, kHidden);
    }
    weights.linear(layer + "attention.output.dense", kHidden, kHidden);
    weights.norm(layer + "attention.output.LayerNorm", true);
    weights.linear(layer + "intermediate.dense", kBetween, kHidden);
    weights.linear(layer + "output.dense", kHidden, kBetween);
    weights.norm(layer + "output.LayerNorm", true);
  }
}

void draw_gpt2(Weights& weights) {
  weights.matrix("transformer.wte", kVocabSize, kHidden);
  weights.matrix("transformer.wpe", kPositions, kHidden);
  for (int i = 0; i < kNumLayers; ++i) {
    const std::string layer = fmt::format("transformer.h.{}.", i);
    weights.norm(layer + "ln_1", true);
    weights.norm(layer + "ln_2", true);
    weights.transposed_linear(layer + "attn.c_attn", 3 * kHidden, kHidden);
    weights.transposed_linear(layer + "attn.c_proj", kHidden, kHidden);
    weights.transposed_linear(layer + "mlp.c_fc", kBetween, kHidden);
    weights.transposed_linear(layer + "mlp.c_proj", kHidden, kBetween);
  }
  weights.norm("transformer.ln_f", true);
}

void draw_llama(Weights& weights) {
  weights.matrix("model.embed_tokens", kVocabSize, kHidden);
  for (int i = 0; i < kNumLayers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    weights.norm(layer + "input_layernorm", false);
    weights.norm(layer + "post_attention_layernorm", false);
    weights.matrix(layer + "self_attn.q_proj", kWidth, kHidden);
    weights.matrix(layer + "self_attn.k_proj", kKvWidth, kHidden);
    weights.matrix(layer + "self_attn.v_proj", kKvWidth, kHidden);
    weights.matrix(layer + "self_attn.o_proj", kHidden, kWidth);
    weights.matrix(layer + "mlp.gate_proj", kBetween, kHidden);
    weights.matrix(layer + "mlp.up_proj", kBetween, kHidden);
    weights.matrix(layer + "mlp.down_proj", kHidden, kBetween);
  }
  weights.norm("model.norm", false);
  weights.matrix("lm_head", kVocabSize, kHidden);
}

nlohmann::json config_of(Family family) {
  if (family == Family::kGpt2) {
    return {{"model_type", "gpt2"},
            {"architectures", {"GPT2LMHeadModel"}},
            {"n_embd", kHidden},
            {"n_layer", kNumLayers},
            {"n_head", 3},
            {"n_positions", kPositions},
            {"n_inner", kBetween},
            {"activation_function", "gelu_new"},
            {"vocab_size", kVocabSize}};
  }
  nlohmann::json config{{"hidden_size", kHidden},
                        {"intermediate_size", kBetween},
                        {"num_hidden_layers", kNumLayers},
                        {"max_position_embeddings", kPositions},
                        {"vocab_size", kVocabSize}};
  if (family == Family::kBert) {
    config.update({{"model_type", "bert"},
                   {"architectures", {"BertModel"}},
                   {"num_attention_heads", 3},
                   {"hidden_act", "gelu"}});
  } else {
    config.update({{"model_type", "llama"},
                   {"architectures", {"LlamaForCausalLM"}},
                   {"num_attention_heads", 4},
                   {"num_key_value_heads", 2},
                   {"head_dim", 4},
                   {"hidden_act", "silu"},
                   {"tie_word_embeddings", false}});
  }
  return config;
}

// A tokenizer of words "w0" to "w35" after four special tokens.
std::string tokenizer_json() {
  nlohmann::json vocabulary{{"[UNK]", 0}, {"[CLS]", 1}, {"[SEP]", 2}, {"[PAD]", 3}};
  nlohmann::json added = nlohmann::json::array();
  for (const auto& [name, id] : vocabulary.items()) {
    added.push_back({{"id", id},
                     {"content", name},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  for (std::int64_t id = 4; id < kVocabSize; ++id) vocabulary[fmt::format("w{}", id - 4)] = id;
  const nlohmann::json tokenizer{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor",
       {{"type", "BertProcessing"}, {"sep", {"[SEP]", 2}}, {"cls", {"[CLS]", 1}}}},
      {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100},
        {"vocab", vocabulary}}}};
  return tokenizer.dump();
}

}  // namespace

TinyModel::TinyModel(Family family) {
  std::string name = (std::filesystem::temp_directory_path() / "heed-model-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for a tiny model");
  folder_ = name;
  Weights weights;
  switch (family) {
    case Family::kBert:
      draw_bert(weights);
      break;
    case Family::kGpt2:
      draw_gpt2(weights);
      break;
    case Family::kLlama:
      draw_llama(weights);
      break;
    default:
      throw std::invalid_argument("TinyModel: expected BERT, GPT-2 or Llama");
  }
  weights.save(folder_ / "model.safetensors");
  write("config.json", config_of(family).dump());
  write("tokenizer.json", tokenizer_json());
}

TinyModel::~TinyModel() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

void TinyModel::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ / name) << text;
}

void TinyModel::change_tensors(
    const std::function<void(std::map<std::string, Tensor<float>>&)>& change) const {
  const std::filesystem::path path = folder_ / "model.safetensors";
  std::map<std::string, Tensor<float>> tensors;
  for (auto& [name, tensor] : read_safetensors(path).tensors) {
    tensors.emplace(name, std::get<Tensor<float>>(std::move(tensor)));
  }
  change(tensors);
  std::map<std::string, AnyView> views;
  for (const auto& [name, tensor] : tensors) views.emplace(name, tensor.view());
  write_safetensors(path, views);
}

std::string TinyModel::read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(folder_ / name).rdbuf();
  return text.str();
}

}  // namespace heed::testing_support
