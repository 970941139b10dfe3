/// What a transformer is made of: the numbers in a model's config.json or GGUF metadata.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/attention/rotary.h"
#include "heed/attention/rotary_frequencies.h"
#include "heed/core/config.h"
#include "heed/io/gguf.h"

namespace heed { inline namespace v0 { namespace models {

/// The graphs that heed knows.
enum class Family {
  kBert,   ///< encoder: every token sees every other, norms after each sum, GELU
  kGpt2,   ///< decoder: learned positions, norms before each part, GELU
  kLlama,  ///< decoder: rotary positions, RMS norms, gated SiLU; also Mistral, Qwen2, SmolLM2
};

/// "bert", "gpt2", "llama".
HEED_API std::string_view to_string(Family family);

/// The function between the two products of a feed-forward layer.
enum class Activation {
  kGelu,      ///< x · Φ(x)
  kGeluTanh,  ///< its approximation by tanh, as in GPT-2
  kSilu,      ///< x · sigmoid(x)
  kRelu,
};

/// How the vectors of a text's tokens become one.
struct Pooling {
  enum class Kind {
    kMean,
    kFirstToken,
    kLastToken,
    kMax,             ///< of each column
    kMeanSqrtLength,  ///< the sum divided by the square root of the number of tokens
    kWeightedMean,    ///< token i counts i + 1 times
  };
  std::vector<Kind> kinds = {Kind::kMean};  ///< of each a vector; they stand side by side
  bool normalize = false;                   ///< all of it to length 1
  std::int64_t max_tokens = kUnbounded;     ///< longer texts are cut off
  std::string prompt = {};                  ///< stands before every text
};

/// A rotary embedding of query and key.
struct RotaryPositions {
  double base = 10000;
  std::int64_t rotary_dim = 0;
  RotaryPairing pairing = RotaryPairing::kHalves;
  RotaryScaling scaling = std::monostate{};
  /// What the scaled frequencies are divided by, [rotary_dim / 2]; none: all by 1. GGUF files hold
  /// Llama 3's scaling so.
  std::vector<double> divisors = {};
};

/// Which products of a layer add a vector to their result.
struct Biases {
  bool inputs = false;        ///< those that make query, key and value
  bool output = false;        ///< that behind attention
  bool feed_forward = false;  ///< those of the feed-forward layer
};

/// The sizes and kinds of a transformer's parts.
struct ModelConfig {
  Family family = Family::kLlama;
  std::string architecture =
      {};  ///< as the file names it: "BertModel", "LlamaForCausalLM", "qwen2"
  std::int64_t vocab_size = 0;
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t max_positions = 0;    ///< tokens that a text may have
  std::int64_t num_token_types = 0;  ///< BERT's; otherwise 0
  double norm_epsilon = 1e-5;
  Activation activation = Activation::kSilu;
  Biases biases = {};
  std::optional<RotaryPositions> rotary = std::nullopt;
  std::optional<std::int64_t> window = std::nullopt;  ///< positions that a query sees, its own too
  /// The scores' matrix is that of the tokens. A file that has one of its own has it whatever its
  /// configuration says, as transformers reads it.
  bool has_tied_head = true;
  std::vector<std::int64_t> end_ids = {};         ///< tokens that end a text
  std::optional<Pooling> pooling = std::nullopt;  ///< of folders

  bool is_causal() const noexcept { return family != Family::kBert; }
};

/// Of the config.json of a folder as transformers saves it, and of what sentence-transformers adds
/// (modules.json and the files of the modules that it lists, sentence_bert_config.json,
/// config_sentence_transformers.json). Every member is used, or known to change no result.
/// @throws FormatError naming the file and the member that is missing, of a wrong kind, out of
/// range, unknown, or means something that heed's graphs lack; IoError.
HEED_API ModelConfig read_config(const std::filesystem::path& folder);
/// Of a GGUF file's metadata. @throws FormatError naming the key.
HEED_API ModelConfig read_config(const GgufFile& file);

}}}  // namespace heed::v0::models
