/// The configuration of a transformer, from a model's config.json or GGUF metadata.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
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

/// The model families that heed can run.
enum class Family {
  kBert,        ///< encoder: every token sees every other, norms after each sum, GELU
  kRoberta,     ///< BERT whose first position is that after the padding token's id
  kDistilBert,  ///< BERT without token types
  kGpt2,        ///< decoder: learned positions, norms before each part, GELU
  kLlama,       ///< decoder: rotary positions, RMS norms, gated SiLU; also Mistral, Qwen2, SmolLM2
  kQwen3,       ///< Llama with norms of every head's query and key
  kOlmo2,       ///< Llama with norms after each part, of all queries and of all keys
  kSmolLm3,     ///< Llama with layers without rotary positions
  kGemma2,      ///< norms before and after each part, softcaps, windows in every second layer
  kGemma3,      ///< norms before and after each part and of query and key, windows in most layers
  kGptNeoX,     ///< layer norms, parts in parallel, part of each head is turned; Pythia
  kGptNeo,      ///< GPT-2 with windows in every second layer and scores that are not scaled
  kGptJ,        ///< parts in parallel after one norm, adjacent dimensions are turned
  kOpt,         ///< GPT-2 with ReLU
  kBloom,       ///< GPT-2 with ALiBi in place of positions
  kFalcon,      ///< parts in parallel, few keys for many queries
  kPhi,         ///< parts in parallel after one norm, part of each head is turned; Phi-1.5, Phi-2
  kPhi3,        ///< Llama whose products are fused, LongRoPE; also Phi-4
  kGranite,     ///< Llama with factors of embeddings, scores, parts and logits
  kStableLm,    ///< Llama with layer norms, part of each head is turned
  kStarCoder2,  ///< layer norms, biases, feed-forward without a gate, windows
  kMixtral,     ///< Mistral with experts
  kQwen3Moe,    ///< Qwen3 with experts
  kCohere,      ///< layer norms without biases, parts in parallel after one norm; Command R
  kT5,          ///< encoder and decoder: biases of scores by distance, RMS norms, ReLU
  kT5Gated,     ///< T5 1.1 with a gate in the feed-forward layer; Flan-T5
  kBart,        ///< encoder and decoder: learned positions, norms after each sum, GELU
  kMarian,      ///< BART with sinusoidal positions; OPUS-MT
  kMpnet,       ///< RoBERTa without token types, and with a learned number for every distance
  kElectra,     ///< BERT whose embeddings may be of another width
  kAlbert,      ///< BERT whose embeddings are narrow, and whose layers share their weights
  kModernBert,  ///< encoder: rotary positions, norms before each part, windows in most layers
  kNomicBert,   ///< BERT with rotary positions, gated SiLU and no biases of products
};

/// The name of a family: "bert", "gpt2", "llama", …
HEED_API std::string_view to_string(Family family);

/// The activation function of a feed-forward layer.
enum class Activation {
  kGelu,      ///< x · Φ(x)
  kGeluTanh,  ///< its approximation by tanh, as in GPT-2
  kSilu,      ///< x · sigmoid(x)
  kRelu,
};

/// How a norm of x is computed: with the mean taken away and divided by the standard deviation, or
/// divided by the root of the mean of squares.
enum class NormKind { kLayer, kRms };

/// The order of a layer's parts, attention and feed-forward.
enum class PartOrder {
  kInTurn,           ///< x += attention(norm(x)), and then x += feed_forward(other norm(x))
  kParallel,         ///< x += attention(norm(x)) + feed_forward(other norm(x))
  kParallelOneNorm,  ///< x += attention(y) + feed_forward(y) with y = norm(x)
};

/// The norms of queries and keys.
enum class HeadNorms {
  kNone,
  kShared,    ///< of each head, whose weights all heads share
  kOwn,       ///< of each head, with weights of its own
  kAllHeads,  ///< of all heads as one vector
};

/// A product behind pooling: vector = activation(W · vector + bias).
struct PooledDense {
  enum class Activation { kIdentity, kTanh, kRelu, kGelu };
  std::filesystem::path folder;  ///< with model.safetensors: linear.weight, linear.bias
  std::int64_t in_size = 0;
  std::int64_t out_size = 0;
  bool has_bias = true;
  Activation activation = Activation::kTanh;
};

/// How the vectors of a text's tokens become one vector.
struct Pooling {
  enum class Kind {
    kMean,
    kFirstToken,
    kLastToken,
    kMax,             ///< the maximum of each column
    kMeanSqrtLength,  ///< the sum divided by the square root of the number of tokens
    kWeightedMean,    ///< token i has the weight i + 1
  };
  std::vector<Kind> kinds = {Kind::kMean};  ///< one vector for each kind, concatenated
  std::vector<PooledDense> dense = {};      ///< then the vector goes through these
  bool normalize = false;                   ///< the result is scaled to norm 1
  std::int64_t max_tokens = kUnbounded;     ///< longer texts are truncated
  std::string prompt = {};                  ///< inserted before every text
};

/// The rotary embedding of queries and keys.
struct RotaryPositions {
  double base = 10000;
  std::int64_t rotary_dim = 0;
  RotaryPairing pairing = RotaryPairing::kHalves;
  RotaryScaling scaling = std::monostate{};
  /// Divisors of the scaled frequencies, [rotary_dim / 2]; empty: all 1. GGUF files store Llama 3's
  /// scaling in this way.
  std::vector<double> divisors = {};
};

/// T5's bias of scores: each head has a number for each bucket of distances (RelativeBuckets::t5),
/// the same in all layers.
struct PositionBuckets {
  std::int64_t count = 32;
  std::int64_t max_distance = 128;
};

/// The products and norms that have a bias.
struct Biases {
  bool inputs = false;        ///< the products for query, key and value
  bool output = false;        ///< the product after attention
  bool feed_forward = false;  ///< the products of the feed-forward layer
  bool norms = false;         ///< all norms but those of queries and keys
  bool head = false;          ///< the output projection
};

/// A mixture of experts: feed-forward layers of which each token has a few. A matrix gives a score
/// to each expert, the softmax of which are their weights; those of a token are the largest ones.
struct Experts {
  std::int64_t count = 0;      ///< of a layer
  std::int64_t per_token = 0;  ///< that compute, the results of which are added by their weights
  std::int64_t intermediate_size = 0;
  bool has_weights_of_sum_1 = false;  ///< the weights of a token's experts are divided by their sum
};

/// What layers of one model differ in.
struct LayerConfig {
  /// The positions that a query sees, with its own and those before it; in an encoder as many after
  /// it.
  std::optional<std::int64_t> window = std::nullopt;
  std::optional<std::size_t> rotary = std::nullopt;  ///< of ModelConfig::rotaries; otherwise none
  bool has_attention_norm = true;                    ///< a norm before attention, if any layer has
  bool has_experts = false;  ///< ModelConfig::experts in place of one feed-forward layer
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
  std::int64_t max_positions = 0;    ///< the most tokens of a text
  std::int64_t num_token_types = 0;  ///< BERT's; otherwise 0
  /// The width of embeddings that a matrix turns into hidden states; otherwise there is none.
  std::optional<std::int64_t> embedding_size = std::nullopt;
  bool shares_layers = false;  ///< all layers have the weights of the first
  /// RoBERTa's: positions count the tokens that are not this one, which has the row before the
  /// first.
  std::optional<std::int64_t> padding_id = std::nullopt;
  /// The row of the table of positions for a text's first token.
  std::int64_t first_position = 0;
  bool sees_later_tokens = false;  ///< an encoder
  /// The encoder whose output the layers attend to, after they attended to the tokens before; null
  /// if there is none.
  std::shared_ptr<const ModelConfig> encoder = nullptr;
  std::int64_t start_id = 0;  ///< the first token of a decoder with an encoder
  /// Positions are not stored but computed: sin(p · 10000^(−2j/hidden_size)) for 0 ≤ j <
  /// hidden_size / 2, then the cosines.
  bool has_sinusoidal_positions = false;
  PartOrder part_order = PartOrder::kInTurn;
  NormKind norms = NormKind::kRms;
  double norm_epsilon = 1e-5;
  HeadNorms head_norms = HeadNorms::kNone;
  Activation activation = Activation::kSilu;
  Biases biases = {};
  std::optional<Experts> experts = std::nullopt;  ///< of layers that have them
  /// Scores fall with the distance of tokens, by alibi_slopes().
  bool has_alibi = false;
  /// Scores have a learned number for the bucket of the distance of tokens.
  std::optional<PositionBuckets> position_buckets = std::nullopt;
  std::vector<RotaryPositions> rotaries = {};            ///< those that layers use
  std::vector<LayerConfig> layers = {};                  ///< [num_layers]
  double embedding_scale = 1;                            ///< the factor of token embeddings
  double residual_scale = 1;                             ///< that of what a part adds
  double logit_scale = 1;                                ///< that of logits
  std::optional<double> attention_scale = std::nullopt;  ///< otherwise 1 / √head_dim
  std::optional<double> score_softcap = std::nullopt;    ///< c in score = c · tanh(score / c)
  std::optional<double> logit_softcap = std::nullopt;    ///< c in logit = c · tanh(logit / c)
  /// The output projection is the token embedding. As in transformers, a file that has an output
  /// projection uses it even if its configuration says otherwise.
  bool has_tied_head = true;
  std::vector<std::int64_t> end_ids = {};         ///< tokens that end a text
  std::optional<Pooling> pooling = std::nullopt;  ///< only from folders

  bool is_causal() const noexcept { return !sees_later_tokens; }
  /// The number of rows of the table of positions.
  std::int64_t num_position_rows() const noexcept { return max_positions + first_position; }
};

/// Reads the config.json of a folder as transformers saves it, and the additions of
/// sentence-transformers (modules.json and the files of its modules, sentence_bert_config.json,
/// config_sentence_transformers.json). Every member is used, or known to change no result.
/// @throws FormatError naming the file and the member that is missing, of a wrong kind, out of
/// range, unknown, or requires a feature that heed does not have; IoError.
HEED_API ModelConfig read_config(const std::filesystem::path& folder);
/// Reads a GGUF file's metadata. @throws FormatError naming the key.
HEED_API ModelConfig read_config(const GgufFile& file);

}}}  // namespace heed::v0::models
