#include <cmath>

#include "heed/nn/seq2seq.h"
#include "nn/seq2seq_checks.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// The longest source or target.
constexpr std::int64_t kMaxLen = 5000;

AttentionSeq2SeqConfig checked(const AttentionSeq2SeqConfig& config) {
  check_sizes("AttentionSeq2Seq", {{"src_vocab_size", config.src_vocab_size},
                                   {"tgt_vocab_size", config.tgt_vocab_size},
                                   {"d_model", config.d_model},
                                   {"num_heads", config.num_heads},
                                   {"num_layers", config.num_layers}});
  check_even("AttentionSeq2Seq", config.d_model);
  return config;
}

Mask source_mask(const std::vector<std::int64_t>& lengths) {
  return lengths.empty() ? Mask() : key_lengths(lengths);
}

}  // namespace

template <class T>
Decoded<T> Seq2Seq<T>::forward(TensorView<const std::int64_t> src,
                               TensorView<const std::int64_t> tgt,
                               const std::vector<std::int64_t>& lengths, bool return_attention) {
  const Encoded<T> encoded = encode(src, lengths);
  return decode(tgt, encoded, encoded.start, return_attention);
}

template <class T>
AttentionSeq2Seq<T>::AttentionSeq2Seq(const AttentionSeq2SeqConfig& config)
    : config_(checked(config)),
      src_embedding_(this->template make_module<Embedding<T>>(
          "src_embedding", config.src_vocab_size, config.d_model)),
      tgt_embedding_(this->template make_module<Embedding<T>>(
          "tgt_embedding", config.tgt_vocab_size, config.d_model)),
      pos_encoding_(this->template make_module<SinusoidalPositionalEncoding<T>>(
          "pos_encoding", config.d_model, kMaxLen, config.dropout)),
      encoder_lstm_(this->template make_module<LSTM<T>>(
          "encoder_lstm", config.d_model, config.d_model / 2,
          LstmOptions{
              .num_layers = config.num_layers, .dropout = config.dropout, .bidirectional = true})),
      encoder_attention_(this->template make_module<MultiHeadAttention<T>>(
          "encoder_attention",
          cross_projections(config.d_model, config.num_heads, config.dropout))),
      encoder_norm_(this->template make_module<LayerNorm<T>>("encoder_norm", config.d_model)),
      decoder_lstm_(this->template make_module<LSTM<T>>(
          "decoder_lstm", config.d_model, config.d_model,
          LstmOptions{.num_layers = config.num_layers, .dropout = config.dropout})),
      cross_attention_(this->template make_module<MultiHeadAttention<T>>(
          "cross_attention", cross_projections(config.d_model, config.num_heads, config.dropout))),
      cross_norm_(this->template make_module<LayerNorm<T>>("cross_norm", config.d_model)),
      output_projection_(this->template make_module<Linear<T>>("output_projection", config.d_model,
                                                               config.tgt_vocab_size)),
      dropout_(this->template make_module<Dropout<T>>("dropout", config.dropout)) {}

template <class T>
Variable<T> AttentionSeq2Seq<T>::embed(Embedding<T>& table, TensorView<const std::int64_t> ids,
                                       std::int64_t first) {
  const double factor = std::sqrt(static_cast<double>(config_.d_model));
  return pos_encoding_.forward(table.forward(ids) * factor, first);
}

template <class T>
Encoded<T> AttentionSeq2Seq<T>::encode(TensorView<const std::int64_t> src,
                                       const std::vector<std::int64_t>& lengths) {
  check_ids("AttentionSeq2Seq::encode", "src", src);
  check_lengths("AttentionSeq2Seq::encode", src, lengths);
  Variable<T> x = embed(src_embedding_, src, 0);
  x = encoder_lstm_.forward(x, config_.packs_source ? lengths : std::vector<std::int64_t>()).out;
  const Variable<T> attended = encoder_attention_.forward(x, {.mask = source_mask(lengths)}).out;
  Encoded<T> encoded{encoder_norm_.forward(x + dropout_.forward(attended)), lengths};
  auto [key, value] = cross_attention_.project(encoded.outputs);
  encoded.keys = std::move(key);
  encoded.values = std::move(value);
  return encoded;
}

template <class T>
Decoded<T> AttentionSeq2Seq<T>::decode(TensorView<const std::int64_t> tgt,
                                       const Encoded<T>& encoded, const DecoderState<T>& state,
                                       bool return_attention) {
  check_batch("AttentionSeq2Seq::decode", tgt, encoded.outputs.extent(0));
  auto [x, lstm_state] =
      decoder_lstm_.forward(embed(tgt_embedding_, tgt, state.position), {}, state.lstm);
  auto [attended, weights] = cross_attention_.attend_to(
      x, {encoded.keys, encoded.values},
      {.mask = source_mask(encoded.lengths), .return_attention = return_attention});
  const Variable<T> normed = cross_norm_.forward(x + dropout_.forward(attended));
  return {output_projection_.forward(normed),
          std::move(weights),
          {std::move(lstm_state), state.position + tgt.extent(1)}};
}

template class Seq2Seq<float>;
template class Seq2Seq<double>;
template class AttentionSeq2Seq<float>;
template class AttentionSeq2Seq<double>;

}}}  // namespace heed::v0::nn
