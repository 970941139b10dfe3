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

/// One attention of a forward pass: of one layer and one text. attention(query, key, value,
/// options), statistics and diagnostics of these operands are what the model computes. The views
/// are valid during the call.
struct AttentionCall {
  std::int64_t layer;
  std::int64_t text;                ///< of the batch
  FloatView query;                  ///< [1, num_heads, n, head_dim], rotary embedding applied
  FloatView key;                    ///< [1, num_kv_heads, n, head_dim], likewise
  FloatView value;                  ///< [1, num_kv_heads, n, head_dim]
  const AttentionOptions& options;  ///< mask and scale
};
/// The weights of every head and query of a call, [num_heads, n, n].
HEED_API Tensor<float> weights_of(const AttentionCall& call);

using AttentionObserver = std::function<void(const AttentionCall&)>;

/// Token ids of one or several texts, one behind the other: text i has the ids boundaries[i] ≤ t <
/// boundaries[i + 1].
struct Inputs {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> boundaries;
  std::vector<std::int64_t> type_ids = {};  ///< of a model with token types; none: all 0

  /// One text.
  static Inputs of(std::vector<std::int64_t> ids);
  static Inputs of(const text::Encoding& encoding);
  /// Several.
  static Inputs of(std::span<const text::Encoding> encodings);

  std::int64_t num_texts() const noexcept {
    return static_cast<std::int64_t>(boundaries.size()) - 1;
  }
};

/// What else happens in a forward pass.
struct ForwardOptions {
  AttentionObserver observer = {};           ///< sees every attention
  std::vector<HeadIndex> switched_off = {};  ///< heads whose output is replaced by 0
  /// Sees the hidden states [tokens, hidden_size] after the embedding (0) and after each layer
  /// (1 … num_layers), as transformers' hidden_states.
  std::function<void(std::int64_t, FloatView)> hidden_states = {};
};

/// How keys and values of what was read are kept.
struct PastOptions {
  KvStorage key_storage = KvStorage::kFloat32;
  KvStorage value_storage = KvStorage::kFloat32;
};

/// A transformer with its weights and its tokenizer. A handle: copies share the weights. What is
/// const may be called by any number of threads.
class HEED_API Model {
 public:
  const ModelConfig& config() const noexcept;
  /// Where the files have none, one that knows no texts: it encodes none, and its labels are ids.
  const text::Tokenizer& tokenizer() const noexcept;
  /// Of all weights, a tied one counted once.
  std::int64_t num_parameters() const noexcept;
  /// Memory that the weights take as they are stored, in bytes.
  std::int64_t num_bytes() const noexcept;

  /// Hidden states of every token, after the last layer and the last norm.
  /// @return [ids.size(), hidden_size]
  /// @throws InvalidArgument when an id is not in the vocabulary, boundaries do not fit, a text is
  /// longer than the model's positions reach, or numbers grow beyond float32; FormatError naming
  /// the tensor whose weights are not finite, where the result is not.
  Tensor<float> forward(const Inputs& inputs, const ForwardOptions& options = {}) const;

  /// Room for what a causal model keeps of a text that it reads piece by piece, and of its forks.
  /// @throws InvalidArgument when the model is not causal.
  nn::Past make_past(const PastOptions& options = {}) const;
  /// Hidden states of tokens that follow what `past` keeps, which then keeps them too. The same
  /// bits however a text is divided, but for the rounding of products of other heights.
  /// @param past of one text, of make_past()
  /// @return [ids.size(), hidden_size]
  /// @throws InvalidArgument as the other forward().
  Tensor<float> forward(std::span<const std::int64_t> ids, nn::Past& past,
                        const ForwardOptions& options = {}) const;

  /// Scores of the token that comes next: logits [n, vocab_size] of hidden states [n, hidden_size].
  /// @throws InvalidArgument when the model has no head for it, and as forward() when the result is
  /// not finite.
  Tensor<float> logits(FloatView hidden) const;
  bool has_head() const noexcept;

  /// One vector for each text, as config().pooling says, or the mean of its tokens' vectors.
  /// @return [texts.size(), hidden_size times the kinds of pooling]
  /// @throws InvalidArgument when a text is not valid UTF-8, or there is no tokenizer, and as
  /// forward().
  Tensor<float> embed(std::span<const std::string> texts) const;

  struct Parts;  ///< weights and tokenizer: what load() makes

 private:
  friend HEED_API Model load(const std::filesystem::path& path);
  explicit Model(std::shared_ptr<const Parts> parts);

  std::shared_ptr<const Parts> parts_;
};

/// The model of a folder as transformers saves it (config.json, model.safetensors or its shards,
/// tokenizer.json or vocab.txt if there is one) or of a GGUF file. Files are mapped: weights are
/// read when they are first used, and stay as small as they are stored. Every tensor is used, or
/// known to change no result.
/// @throws FormatError naming the file and what is missing, wrong or unknown; IoError, which says
/// what lies at the path and what to do where that is no such model.
HEED_API Model load(const std::filesystem::path& path);

/// The mean of −ln p(token | the tokens before it), in nats, over all tokens of a text but the
/// first. @throws InvalidArgument when there are fewer than two tokens, and as forward().
HEED_API double mean_loss(const Model& model, std::span<const std::int64_t> ids,
                          const ForwardOptions& options = {});

}}}  // namespace heed::v0::models
