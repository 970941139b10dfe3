/// A trained transformer, ready to run.
///
///     const heed::models::Model model = heed::models::load("all-MiniLM-L6-v2");
///     const heed::Tensor<float> vectors = model.embed(sentences);
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/kv_storage.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/models/config.h"
#include "heed/nn/past.h"
#include "heed/text/tokenizer.h"

namespace heed { inline namespace v0 { namespace models {

/// A head of a model.
struct HeadIndex {
  std::int64_t layer = 0;
  std::int64_t head = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): the tool takes the 0 of the language for a pointer
  friend auto operator<=>(const HeadIndex&, const HeadIndex&) = default;
};

/// One call of attention in a forward pass, for one layer and one text. The model computes
/// attention(query, key, value, options); statistics and diagnostics take the same operands. The
/// views are valid during the call.
struct AttentionCall {
  std::int64_t layer;
  std::int64_t text;                ///< its index in the batch
  FloatView query;                  ///< [1, num_heads, n, head_dim], rotary embedding applied
  FloatView key;                    ///< [1, num_kv_heads, n, head_dim], rotary embedding applied
  FloatView value;                  ///< [1, num_kv_heads, n, head_dim]
  const AttentionOptions& options;  ///< mask and scale
};
/// The weights of every head and query of a call, [num_heads, n, n].
HEED_API Tensor<float> weights_of(const AttentionCall& call);

/// A function that is called for every attention call of a forward pass.
using AttentionObserver = std::function<void(const AttentionCall&)>;

/// Token ids of one or several texts, concatenated: text i has the ids boundaries[i] ≤ t <
/// boundaries[i + 1].
struct Inputs {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> boundaries;
  std::vector<std::int64_t> type_ids = {};  ///< for a model with token types; empty: all 0

  /// The inputs of one text.
  static Inputs of(std::vector<std::int64_t> ids);
  static Inputs of(const text::Encoding& encoding);
  /// The inputs of several texts.
  static Inputs of(std::span<const text::Encoding> encodings);

  std::int64_t num_texts() const noexcept {
    return static_cast<std::int64_t>(boundaries.size()) - 1;
  }
};

/// A text that a decoder attends to, from Model::read_source().
struct Source {
  Tensor<float> hidden;               ///< the encoder's output, [n, hidden_size]
  std::vector<Tensor<float>> keys;    ///< of each layer of the decoder, [n, num_heads, head_dim]
  std::vector<Tensor<float>> values;  ///< likewise
};

/// Options of a forward pass.
struct ForwardOptions {
  AttentionObserver observer = {};           ///< called for every attention call
  std::vector<HeadIndex> switched_off = {};  ///< heads whose output is replaced by 0
  /// What a decoder with an encoder attends to; other models have none. One text at a time.
  const Source* source = nullptr;
  /// Called for every attention call of a decoder to its source, whose keys and values it has.
  AttentionObserver cross_observer = {};
  /// Called with the hidden states [tokens, hidden_size] after the embedding (0) and after each
  /// layer (1 … num_layers), like transformers' hidden_states.
  std::function<void(std::int64_t, FloatView)> hidden_states = {};
};

struct Seal;

/// Options of Model::embed().
struct EmbedOptions {
  Seal* seal = nullptr;  ///< where given, receives the seal of texts and vectors
};

/// Called with the bytes that were hashed so far, and all. From any thread, one call at a time.
using HashProgress = std::function<void(std::int64_t done, std::int64_t total)>;

/// The storage of a past's keys and values.
struct PastOptions {
  KvStorage key_storage = KvStorage::kFloat32;
  KvStorage value_storage = KvStorage::kFloat32;
};

/// A transformer with its weights and its tokenizer. A handle: copies share the weights. Const
/// functions may be called by any number of threads.
class HEED_API Model {
 public:
  const ModelConfig& config() const noexcept;
  /// The tokenizer. If the files have none, it cannot encode a text, and its labels are ids.
  const text::Tokenizer& tokenizer() const noexcept;
  /// The number of weights; shared ones count once.
  std::int64_t num_parameters() const noexcept;
  /// Memory of the weights as they are stored, in bytes.
  std::int64_t num_bytes() const noexcept;

  /// The hidden states of every token, after the last layer and the final norm.
  /// @return [ids.size(), hidden_size]
  /// @throws InvalidArgument when an id is not in the vocabulary, boundaries do not fit, a text is
  /// longer than the model's positions, or numbers overflow float32; FormatError naming the tensor
  /// when the cause is a weight that is not finite.
  Tensor<float> forward(const Inputs& inputs, const ForwardOptions& options = {}) const;

  /// An empty cache of keys and values, for a causal model that reads a text piece by piece, and
  /// for its forks.
  /// @throws InvalidArgument when the model is not causal.
  nn::Past make_past(const PastOptions& options = {}) const;
  /// The hidden states of tokens that follow those in `past`, to which they are added. Keys in the
  /// past stay as they were turned: where a text grows beyond the first length of LongRoPE, read it
  /// anew, as generate() does. Otherwise the bits do not depend on how a text is divided, except
  /// for the rounding of matrix products with other numbers of rows.
  /// @param past of one text, from make_past()
  /// @return [ids.size(), hidden_size]
  /// @throws InvalidArgument as the other forward().
  Tensor<float> forward(std::span<const std::int64_t> ids, nn::Past& past,
                        const ForwardOptions& options = {}) const;

  /// The encoder of a model that has one (config().encoder); its forward() gives hidden states. Its
  /// embeddings are the decoder's. @throws InvalidArgument when there is none.
  Model encoder() const;
  /// Reads a text with the encoder, for ForwardOptions::source.
  /// @throws InvalidArgument when the model has no encoder, and as forward().
  Source read_source(std::span<const std::int64_t> ids) const;

  /// The scores of the next token: logits [n, vocab_size] from hidden states [n, hidden_size].
  /// @throws InvalidArgument when the model has no output projection, and as forward() when the
  /// result is not finite.
  Tensor<float> logits(FloatView hidden) const;
  bool has_head() const noexcept;

  /// One vector for each text, by config().pooling or, without it, the mean of its tokens' vectors.
  /// @return [texts.size(), hidden_size · number of pooling kinds], or the size of the last product
  /// behind pooling
  /// @throws InvalidArgument when a text is not valid UTF-8, or there is no tokenizer, and as
  /// forward().
  Tensor<float> embed(std::span<const std::string> texts, const EmbedOptions& options = {}) const;

  /// The SHA-256 of the model's files in hexadecimal digits. Of a GGUF file it is what `sha256sum
  /// FILE` prints; of a folder, and of a GGUF file in parts, that of the lines that `sha256sum
  /// FILE...` prints of the files that load() read, sorted by name: `cd FOLDER && sha256sum FILE...
  /// | sha256sum`. It is computed at the first call, at some hundred megabytes a second, and kept.
  /// Can be cancelled (heed/core/cancellation.h). @throws IoError when a file cannot be read any
  /// more.
  std::string sha256(const HashProgress& progress = {}) const;

  struct Parts;  ///< weights and tokenizer, which load() makes

 private:
  friend HEED_API Model load(const std::filesystem::path& path);
  explicit Model(std::shared_ptr<const Parts> parts);

  std::shared_ptr<const Parts> parts_;
};

/// Loads a model from a folder as transformers saves it (config.json, model.safetensors or its
/// shards, and tokenizer.json or vocab.txt if present) or from a GGUF file. Files are mapped:
/// weights are read at first use, and keep their stored size. Every tensor is used, or known to
/// change no result.
/// @throws FormatError naming the file and what is missing, wrong or unknown; IoError with the
/// contents of the path and a remedy when it has no such model.
HEED_API Model load(const std::filesystem::path& path);

/// The mean of −ln p(token | the tokens before it), in nats, over all tokens of a text but the
/// first. @throws InvalidArgument when there are fewer than two tokens, and as forward().
HEED_API double mean_loss(const Model& model, std::span<const std::int64_t> ids,
                          const ForwardOptions& options = {});

}}}  // namespace heed::v0::models
