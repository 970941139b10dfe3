/// Layers that convert token ids to vectors: embeddings and position encodings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "heed/core/config.h"
#include "heed/nn/layers.h"

namespace heed { inline namespace v0 { namespace nn {

/// A table of token vectors, the part `embedding`.
template <class T = float>
class HEED_API TokenEmbedding : public Module<T> {
 public:
  TokenEmbedding(std::int64_t vocab_size, std::int64_t embed_dim)
      : embedding_(this->template make_module<Embedding<T>>("embedding", vocab_size, embed_dim)) {}

  /// From token_ids [...] to vectors [..., embed_dim]. @throws InvalidArgument when an id is not in
  /// [0, vocab_size).
  Variable<T> forward(TensorView<const std::int64_t> token_ids) {
    return embedding_.forward(token_ids);
  }
  std::string class_name() const override { return "TokenEmbedding"; }

 private:
  Embedding<T>& embedding_;
};

/// x + sinusoidal_encoding, which is stored in the buffer `pe` [1, max_len, d_model], followed by
/// dropout if it is given.
template <class T = float>
class HEED_API SinusoidalPositionalEncoding : public Layer<T> {
 public:
  /// @throws InvalidArgument when a size is negative or d_model is odd.
  explicit SinusoidalPositionalEncoding(std::int64_t d_model, std::int64_t max_len = 2048,
                                        std::optional<double> dropout = std::nullopt);

  /// x [batch, length, d_model]. @throws InvalidArgument when length exceeds max_len.
  Variable<T> forward(const Variable<T>& x) override { return forward(x, 0); }
  /// forward() for an x whose first element is at position `first`.
  Variable<T> forward(const Variable<T>& x, std::int64_t first);
  std::string class_name() const override { return "SinusoidalPositionalEncoding"; }

 private:
  Dropout<T>* dropout_ = nullptr;
  Variable<T> pe_;
};

/// x + a learned vector for each position, the part `position_embeddings`, followed by dropout. As
/// in PyTorch, the table is drawn twice: by Embedding, and again with standard deviation 0.02.
template <class T = float>
class HEED_API LearnedPositionalEncoding : public Layer<T> {
 public:
  /// @throws InvalidArgument when a size is negative.
  explicit LearnedPositionalEncoding(std::int64_t d_model, std::int64_t max_len = 512,
                                     double dropout = 0.1);

  /// x [batch, length, d_model]. @throws InvalidArgument when length exceeds max_len.
  Variable<T> forward(const Variable<T>& x) override { return forward(x, 0); }
  /// forward() for an x whose first element is at position `first`.
  Variable<T> forward(const Variable<T>& x, std::int64_t first);
  std::string class_name() const override { return "LearnedPositionalEncoding"; }

 private:
  Embedding<T>& position_embeddings_;
  Dropout<T>& dropout_;
};

extern template class TokenEmbedding<float>;
extern template class TokenEmbedding<double>;
extern template class SinusoidalPositionalEncoding<float>;
extern template class SinusoidalPositionalEncoding<double>;
extern template class LearnedPositionalEncoding<float>;
extern template class LearnedPositionalEncoding<double>;

}}}  // namespace heed::v0::nn
