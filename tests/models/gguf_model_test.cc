// Models read from GGUF files compared with the same weights in a folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/io/safetensors.h"
#include "heed/models/model.h"
#include "io/sha256.h"
#include "support/gguf_builder.h"
#include "support/tensors.h"
#include "support/tiny_model.h"

namespace heed { namespace {

using models::Family;
using models::Inputs;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::gguf_array;
using testing_support::gguf_text;
using testing_support::GgufBuilder;
using testing_support::max_difference;
using testing_support::raw;
using testing_support::TinyModel;

constexpr std::int64_t kHeadDim = 4;
constexpr double kScale = 8;
constexpr double kLow = 1;
constexpr double kHigh = 4;
constexpr std::int64_t kOriginal = 16;

// Writes a folder of a small Llama with the scaled frequencies of Llama 3.
void write_scaling(const TinyModel& files) {
  nlohmann::json config = nlohmann::json::parse(files.read("config.json"));
  config["rms_norm_eps"] = 1e-5;
  config["rope_theta"] = 10000.0;
  config["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", kScale},
                            {"low_freq_factor", kLow},
                            {"high_freq_factor", kHigh},
                            {"original_max_position_embeddings", kOriginal}};
  files.write("config.json", config.dump());
}

// Returns the factors that conversions to GGUF write for it, by wavelength.
std::vector<float> llama3_divisors() {
  std::vector<float> divisors;
  for (std::int64_t i = 0; i < kHeadDim / 2; ++i) {
    const double frequency = std::pow(10000.0, -2.0 * static_cast<double>(i) / kHeadDim);
    const double wavelength = 2 * std::numbers::pi / frequency;
    const auto original = static_cast<double>(kOriginal);
    double divisor = 1;
    if (wavelength > original / kLow) {
      divisor = kScale;
    } else if (wavelength >= original / kHigh) {
      const double smooth = (original / wavelength - kLow) / (kHigh - kLow);
      divisor = 1 / ((1 - smooth) / kScale + smooth);
    }
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

std::string gguf_name(std::string name) {
  const std::vector<std::pair<std::string, std::string>> names{
      {"model.layers.", "blk."},        {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},    {"lm_head", "output"},
      {"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_proj", "attn_q"},   {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"}};
  for (const auto& [from, to] : names) name = replaced(std::move(name), from, to);
  return name;
}

// Returns the rows of query and key in the order of the GGUF architecture "llama": the two rows of
// a rotary pair are adjacent within each head.
Tensor<float> with_neighbours(const Tensor<float>& halves) {
  Tensor<float> rows(halves.shape());
  for (std::int64_t row = 0; row < halves.extent(0); ++row) {
    const std::int64_t at = row % kHeadDim;
    const std::int64_t to = row - at + 2 * (at % (kHeadDim / 2)) + at / (kHeadDim / 2);
    for (std::int64_t i = 0; i < halves.extent(1); ++i) rows(to, i) = halves(row, i);
  }
  return rows;
}

std::string floats(const std::vector<float>& numbers) {
  std::string bytes;
  for (const float number : numbers) bytes += raw(number);
  return bytes;
}

void add_tensor(GgufBuilder& file, const std::string& name, const Tensor<float>& tensor) {
  std::vector<std::uint64_t> dims;
  for (std::int64_t i = tensor.rank(); i > 0; --i) {
    dims.push_back(static_cast<std::uint64_t>(tensor.extent(i - 1)));
  }
  file.add_tensor(name, dims, 0,
                  floats(std::vector<float>(tensor.elements().begin(), tensor.elements().end())));
}

void add_tokenizer(GgufBuilder& file) {
  constexpr std::uint64_t kTokens = 40;
  std::string tokens;
  std::string types;
  for (std::uint64_t i = 0; i + 1 < kTokens; ++i) {
    tokens += gguf_text(std::string(1, static_cast<char>('A' + i)));
    types += raw(std::int32_t{1});
  }
  tokens += gguf_text("AB");
  types += raw(std::int32_t{1});
  file.add("tokenizer.ggml.model", testing_support::kText, gguf_text("gpt2"))
      .add("tokenizer.ggml.pre", testing_support::kText, gguf_text("gpt-2"))
      .add("tokenizer.ggml.tokens", testing_support::kArray,
           gguf_array(testing_support::kText, kTokens, tokens))
      .add("tokenizer.ggml.token_type", testing_support::kArray,
           gguf_array(testing_support::kI32, kTokens, types))
      .add("tokenizer.ggml.merges", testing_support::kArray,
           gguf_array(testing_support::kText, 1, gguf_text("A B")));
}

// Returns the weights of the folder as a GGUF file of the architecture "llama".
GgufBuilder converted_to_gguf(const TinyModel& files) {
  GgufBuilder file;
  file.add("general.architecture", testing_support::kText, gguf_text("llama"));
  for (const auto& [key, number] :
       std::map<std::string, std::uint32_t>{{"block_count", 2},
                                            {"embedding_length", 24},
                                            {"feed_forward_length", 36},
                                            {"context_length", 64},
                                            {"attention.head_count", 4},
                                            {"attention.head_count_kv", 2},
                                            {"attention.key_length", kHeadDim},
                                            {"rope.dimension_count", kHeadDim}}) {
    file.add("llama." + key, testing_support::kU32, raw(number));
  }
  file.add("llama.attention.layer_norm_rms_epsilon", testing_support::kF32, raw(1e-5F));
  add_tokenizer(file);
  const Safetensors folder = read_safetensors(files.folder() / "model.safetensors");
  for (const auto& [name, tensor] : folder.tensors) {
    const auto& numbers = std::get<Tensor<float>>(tensor);
    const bool is_turned = name.find("q_proj") != name.npos || name.find("k_proj") != name.npos;
    add_tensor(file, gguf_name(name), is_turned ? with_neighbours(numbers) : numbers);
  }
  return file;
}

class GgufModels : public testing::Test {
 protected:
  GgufModels() { write_scaling(files_); }

  models::Model opened(const GgufBuilder& file) const {
    const std::string path = files_.folder() / "model.gguf";
    std::ofstream(path, std::ios::binary) << file.build();
    return models::load(path);
  }
  void expect_refused(const std::vector<float>& divisors, const std::string& problem) const {
    GgufBuilder file = converted_to_gguf(files_);
    file.add_tensor("rope_freqs.weight", {divisors.size()}, 0, floats(divisors));
    EXPECT_THAT([&] { opened(file); },
                ThrowsMessage<FormatError>(HasSubstr("tensor rope_freqs.weight " + problem)));
  }

  TinyModel files_{Family::kLlama};
  GgufBuilder file_ = converted_to_gguf(files_);
};

TEST_F(GgufModels, FrequenciesAreDividedByTheTensorOfTheFile) {
  const std::vector<float> divisors = llama3_divisors();
  ASSERT_GT(divisors[0], 1.5F);  // one pair between the bounds, one beyond
  ASSERT_EQ(divisors[1], 8.0F);
  const Inputs inputs = Inputs::of(std::vector<std::int64_t>{1, 7, 12, 7, 30, 39, 4, 12, 2});
  const Tensor<float> expected = models::load(files_.folder()).forward(inputs);
  EXPECT_GT(max_difference<float>(opened(file_).forward(inputs), expected), 1e-2);
  file_.add_tensor("rope_freqs.weight", {divisors.size()}, 0, floats(divisors));
  const models::Model model = opened(file_);
  EXPECT_EQ(model.config().rotaries.front().divisors.size(), 2U);
  EXPECT_LT(max_difference<float>(model.forward(inputs), expected), 1e-5);
}

TEST_F(GgufModels, DivisorsThatMeanNothingAreRefused) {
  expect_refused({1, 2, 3}, "has shape [3], expected [2]");
  expect_refused({1, 0}, "holds 0, expected positive numbers");
  expect_refused({-1, 1}, "holds -1, expected positive numbers");
  expect_refused({1, INFINITY}, "holds inf, expected positive numbers");
  expect_refused({NAN, 1}, "holds nan, expected positive numbers");
}

TEST_F(GgufModels, TheHashIsThatOfTheFile) {
  const std::string bytes = file_.build();
  EXPECT_EQ(opened(file_).sha256(), io::to_hex(io::Sha256().add(bytes).finish()));
}

// Keys besides weights: sizes and kinds, of every type.
TEST_F(GgufModels, KeysThatAreNotReadAreRefused) {
  const auto refused = [&](const std::string& key, std::uint32_t type, const std::string& value,
                           const std::string& problem) {
    GgufBuilder file = converted_to_gguf(files_);
    EXPECT_THAT([&] { opened(file.add(key, type, value)); },
                ThrowsMessage<FormatError>(HasSubstr(key + " is " + problem)));
  };
  refused("llama.attention.scale", testing_support::kF32, raw(0.5F), "0.5, expected no such key");
  refused("llama.logit_scale", testing_support::kBool, "\1", "true, expected no such key");
  refused("llama.swiglu_clamp_exp", testing_support::kArray,
          gguf_array(testing_support::kF32, 2, raw(1.F) + raw(2.F)),
          "an array of 2 numbers, expected no such key");
  refused("llama.expert_shared_count", testing_support::kU32, raw(8U),
          "8, expected 0: heed has no");
  refused("llama.rope.freq_base", testing_support::kF32, raw(1e-45F), "1.4");
  refused("llama.attention.causal", testing_support::kBool, std::string(1, '\0'),
          "false, expected true");
  refused("llama.vocab_size", testing_support::kU32, raw(41U), "41, expected 40");
  refused("general.type", testing_support::kText, gguf_text("adapter"),
          "'adapter', expected 'model'");
  refused("adapter.type", testing_support::kText, gguf_text("lora"), "'lora', expected no such");
}

TEST_F(GgufModels, KeysThatChangeNothingAreRead) {
  const Inputs inputs = Inputs::of(std::vector<std::int64_t>{1, 7, 12, 7, 30, 39, 4, 12, 2});
  const Tensor<float> expected = opened(file_).forward(inputs);
  file_.add("general.name", testing_support::kU32, raw(1U))
      .add("somebody.note", testing_support::kBool, "\1")
      .add("llama.attention.sliding_window", testing_support::kU32, raw(3U))
      .add("llama.rope.scaling.factor", testing_support::kF32, raw(0.F));
  EXPECT_EQ(max_difference<float>(opened(file_).forward(inputs), expected), 0);
}

}  // namespace

}  // namespace heed
