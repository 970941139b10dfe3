/// Sequence-to-sequence models: an encoder reads the source, and a decoder writes the target with
/// attention to the source.
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

/// The state of a decoder between tokens.
template <class T>
struct DecoderState {
  LstmState<T> lstm = {};
  std::int64_t position = 0;  ///< the number of tokens it has read
};

/// The result of an encoder.
template <class T>
struct Encoded {
  Variable<T> outputs;                ///< [batch, src_len, d_model]
  std::vector<std::int64_t> lengths;  ///< of each source; empty: no padding
  Variable<T> summary = {};           ///< [batch, d_model]: a source as one vector, if it is used
  DecoderState<T> start = {};         ///< the initial state of the decoder
  /// The keys of attention and, where they differ from the outputs, its values: projected once for
  /// all target tokens.
  Variable<T> keys = {};    ///< [batch, src_len, …]
  Variable<T> values = {};  ///< [batch, src_len, …]
};

/// The result of a decoder.
template <class T>
struct Decoded {
  Variable<T> logits;  ///< [batch, tgt_len, tgt_vocab_size]: scores of each position's next token
  /// [batch, num_heads, tgt_len, src_len] if requested: the attention of each position to the
  /// source. 0 on padding. Not part of the graph.
  Tensor<T> weights;
  DecoderState<T> state;  ///< after the last token
};

/// The interface of all sequence-to-sequence models.
template <class T = float>
class HEED_API Seq2Seq : public Module<T> {
 public:
  /// @param src     token ids [batch, src_len]
  /// @param lengths the number of tokens of each source, the others being padding; empty: all
  /// @throws InvalidArgument when ids, shapes or lengths do not fit.
  virtual Encoded<T> encode(TensorView<const std::int64_t> src,
                            const std::vector<std::int64_t>& lengths = {}) = 0;

  /// Reads tgt [batch, tgt_len] from `state` on. The result is the same token by token as at once.
  virtual Decoded<T> decode(TensorView<const std::int64_t> tgt, const Encoded<T>& encoded,
                            const DecoderState<T>& state, bool return_attention = true) = 0;

  virtual std::int64_t src_vocab_size() const = 0;
  virtual std::int64_t tgt_vocab_size() const = 0;

  /// Calls encode(), then decode() from the initial state.
  Decoded<T> forward(TensorView<const std::int64_t> src, TensorView<const std::int64_t> tgt,
                     const std::vector<std::int64_t>& lengths = {}, bool return_attention = true);
};

/// The configuration of AttentionSeq2Seq.
struct AttentionSeq2SeqConfig {
  std::int64_t src_vocab_size = 0;
  std::int64_t tgt_vocab_size = 0;
  std::int64_t d_model = 256;
  std::int64_t num_heads = 8;
  std::int64_t num_layers = 2;
  double dropout = 0.1;
  /// If true, the encoder's LSTM stops at each source's end. Otherwise it reads the padding too,
  /// and a translation depends on the other sentences of its batch; attention never sees padding.
  bool packs_source = true;
};

/// Embeddings times √d_model plus sinusoidal positions; an encoder of a bidirectional LSTM and
/// self-attention; a decoder of an LSTM and attention to the encoder's outputs; each attention is
/// followed by a residual connection and a LayerNorm; a projection to the target's vocabulary.
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

/// The attention of a RecurrentSeq2Seq's decoder to the source.
enum class SourceAttention {
  kNone,      ///< none: the decoder gets the encoder's last state only
  kAdditive,  ///< AdditiveAttention
  kDot,       ///< MultiplicativeAttention with this score, as the following ones
  kGeneral,
  kConcat,
};

/// The configuration of RecurrentSeq2Seq.
struct RecurrentSeq2SeqConfig {
  std::int64_t src_vocab_size = 0;
  std::int64_t tgt_vocab_size = 0;
  std::int64_t d_model = 256;
  std::int64_t num_layers = 2;
  SourceAttention attention = SourceAttention::kGeneral;
  double dropout = 0.1;
};

/// The classical encoder and decoder. A bidirectional LSTM reads the source; the decoder's LSTM
/// starts from its last states, and at each step
///
///     h̃ = tanh(W [context; h]),  logits = output_projection(h̃)
///
/// where `context` is the result of attention or, without attention, the source as one vector: the
/// last states of the last layer, the same at each step. The models thus differ in the context
/// alone, and kNone has as many parameters as kDot.
///
/// Source: Luong et al., "Effective Approaches to Attention-based Neural Machine Translation",
/// 2015, section 3.1, without input feeding; for kNone Cho et al., "Learning Phrase Representations
/// using RNN Encoder-Decoder", 2014, whose decoder reads the summary at each step. Bahdanau's
/// decoder also feeds the context into its LSTM; here only its score is used.
template <class T = float>
class HEED_API RecurrentSeq2Seq : public Seq2Seq<T> {
 public:
  /// @throws InvalidArgument unless sizes are positive, d_model is even and 0 ≤ dropout ≤ 1.
  explicit RecurrentSeq2Seq(const RecurrentSeq2SeqConfig& config);

  Encoded<T> encode(TensorView<const std::int64_t> src,
                    const std::vector<std::int64_t>& lengths = {}) override;
  /// Without attention the tensor of weights is empty.
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
