/// Sequence-to-sequence models: an encoder reads the source, a decoder writes the target and looks
/// back at what was read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/alignment_layers.h"
#include "heed/nn/attention_layers.h"
#include "heed/nn/embedding_layers.h"
#include "heed/nn/lstm.h"

namespace heed { inline namespace v0 { namespace nn {

/// Where a decoder stands.
template <class T>
struct DecoderState {
  LstmState<T> lstm = {};
  std::int64_t position = 0;  ///< how many tokens it has read
};

/// What an encoder made of sources.
template <class T>
struct Encoded {
  Variable<T> outputs;                ///< [batch, src_len, d_model]
  std::vector<std::int64_t> lengths;  ///< of each source; none: none is padded
  Variable<T> summary = {};           ///< [batch, d_model]: a source as one vector, if it is used
  DecoderState<T> start = {};         ///< from which the decoder starts
  /// What attention takes scores with and, where they differ from the outputs, what it averages:
  /// projected once, however many tokens are written.
  Variable<T> keys = {};    ///< [batch, src_len, …]
  Variable<T> values = {};  ///< [batch, src_len, …]
};

/// What a decoder said to target tokens.
template <class T>
struct Decoded {
  Variable<T> logits;  ///< [batch, tgt_len, tgt_vocab_size]: scores of each position's next token
  /// [batch, num_heads, tgt_len, src_len] when asked for: what each position saw of the source.
  /// 0 on padding. Not part of the graph.
  Tensor<T> weights;
  DecoderState<T> state;  ///< after the last token
};

/// What all models of this kind can do.
template <class T = float>
class HEED_API Seq2Seq : public Module<T> {
 public:
  /// @param src     token ids [batch, src_len]
  /// @param lengths how many tokens of each source count, the others being padding, or none: all
  /// @throws InvalidArgument when ids, shapes or lengths do not fit.
  virtual Encoded<T> encode(TensorView<const std::int64_t> src,
                            const std::vector<std::int64_t>& lengths = {}) = 0;

  /// Reads tgt [batch, tgt_len] from `state` on. Token by token it gives the same as at once.
  virtual Decoded<T> decode(TensorView<const std::int64_t> tgt, const Encoded<T>& encoded,
                            const DecoderState<T>& state, bool return_attention = true) = 0;

  virtual std::int64_t src_vocab_size() const = 0;
  virtual std::int64_t tgt_vocab_size() const = 0;

  /// encode, then decode from the start.
  Decoded<T> forward(TensorView<const std::int64_t> src, TensorView<const std::int64_t> tgt,
                     const std::vector<std::int64_t>& lengths = {}, bool return_attention = true);
};

struct AttentionSeq2SeqConfig {
  std::int64_t src_vocab_size = 0;
  std::int64_t tgt_vocab_size = 0;
  std::int64_t d_model = 256;
  std::int64_t num_heads = 8;
  std::int64_t num_layers = 2;
  double dropout = 0.1;
  /// Whether the encoder's LSTM stops at each source's end. If not it reads the padding too, and a
  /// translation depends on the sentences in its batch; then padding is hidden from attention only.
  bool packs_source = true;
};

/// Embeddings times √d_model plus sinusoidal positions; a bidirectional LSTM and self-attention
/// encode, an LSTM and attention to the encoder's outputs decode, each with a residual connection
/// and a LayerNorm behind; a projection to the target's vocabulary.
template <class T = float>
class HEED_API AttentionSeq2Seq : public Seq2Seq<T> {
 public:
  /// @throws InvalidArgument unless sizes are positive, d_model is even and a multiple of num_heads
  /// and 0 ≤ dropout ≤ 1.
  explicit AttentionSeq2Seq(const AttentionSeq2SeqConfig& config);

  Encoded<T> encode(TensorView<const std::int64_t> src,
                    const std::vector<std::int64_t>& lengths = {}) override;
  Decoded<T> decode(TensorView<const std::int64_t> tgt, const Encoded<T>& encoded,
                    const DecoderState<T>& state, bool return_attention = true) override;
  std::int64_t src_vocab_size() const override { return config_.src_vocab_size; }
  std::int64_t tgt_vocab_size() const override { return config_.tgt_vocab_size; }
  std::string class_name() const override { return "AttentionSeq2Seq"; }

 private:
  Variable<T> embed(Embedding<T>& table, TensorView<const std::int64_t> ids, std::int64_t first);

  AttentionSeq2SeqConfig config_;
  Embedding<T>& src_embedding_;
  Embedding<T>& tgt_embedding_;
  SinusoidalPositionalEncoding<T>& pos_encoding_;
  LSTM<T>& encoder_lstm_;
  MultiHeadAttention<T>& encoder_attention_;
  LayerNorm<T>& encoder_norm_;
  LSTM<T>& decoder_lstm_;
  MultiHeadAttention<T>& cross_attention_;
  LayerNorm<T>& cross_norm_;
  Linear<T>& output_projection_;
  Dropout<T>& dropout_;
};

/// How the decoder of a RecurrentSeq2Seq looks at the source.
enum class SourceAttention {
  kNone,      ///< it does not: the encoder's last state is all that it gets
  kAdditive,  ///< AdditiveAttention
  kDot,       ///< MultiplicativeAttention, and so on
  kGeneral,
  kConcat,
};

struct RecurrentSeq2SeqConfig {
  std::int64_t src_vocab_size = 0;
  std::int64_t tgt_vocab_size = 0;
  std::int64_t d_model = 256;
  std::int64_t num_layers = 2;
  SourceAttention attention = SourceAttention::kGeneral;
  double dropout = 0.1;
};

/// The classical encoder and decoder. A bidirectional LSTM reads the source; the LSTM that writes
/// starts from its last states, and at each step
///
///     h̃ = tanh(W [context; h]),  logits = output_projection(h̃)
///
/// where `context` is what attention saw, or, without attention, the source as one vector: the last
/// states of the last layer, the same at each step. So the kinds differ in the context alone, and
/// kNone has as many parameters as kDot.
///
/// Source: Luong et al., "Effective Approaches to Attention-based Neural Machine Translation",
/// 2015, section 3.1, without input feeding; for kNone Cho et al., "Learning Phrase Representations
/// using RNN Encoder-Decoder", 2014, whose decoder sees the summary at each step. Bahdanau's
/// decoder also feeds the context into its LSTM; here only its score is taken.
template <class T = float>
class HEED_API RecurrentSeq2Seq : public Seq2Seq<T> {
 public:
  /// @throws InvalidArgument unless sizes are positive, d_model is even and 0 ≤ dropout ≤ 1.
  explicit RecurrentSeq2Seq(const RecurrentSeq2SeqConfig& config);

  Encoded<T> encode(TensorView<const std::int64_t> src,
                    const std::vector<std::int64_t>& lengths = {}) override;
  /// Without attention there are no weights: the tensor is empty.
  Decoded<T> decode(TensorView<const std::int64_t> tgt, const Encoded<T>& encoded,
                    const DecoderState<T>& state, bool return_attention = true) override;
  std::int64_t src_vocab_size() const override { return config_.src_vocab_size; }
  std::int64_t tgt_vocab_size() const override { return config_.tgt_vocab_size; }
  std::string class_name() const override { return "RecurrentSeq2Seq"; }

 private:
  Variable<T> keys_of(const Variable<T>& outputs);
  SoftAlignment<T> align(const Encoded<T>& encoded, const Variable<T>& states);

  RecurrentSeq2SeqConfig config_;
  Embedding<T>& src_embedding_;
  Embedding<T>& tgt_embedding_;
  LSTM<T>& encoder_lstm_;
  LSTM<T>& decoder_lstm_;
  AdditiveAttention<T>* additive_ = nullptr;
  MultiplicativeAttention<T>* multiplicative_ = nullptr;
  Linear<T>* combine_ = nullptr;
  Linear<T>* output_projection_ = nullptr;
  Dropout<T>* dropout_ = nullptr;
};

extern template class Seq2Seq<float>;
extern template class Seq2Seq<double>;
extern template class AttentionSeq2Seq<float>;
extern template class AttentionSeq2Seq<double>;
extern template class RecurrentSeq2Seq<float>;
extern template class RecurrentSeq2Seq<double>;

}}}  // namespace heed::v0::nn
