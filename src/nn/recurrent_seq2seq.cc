#include "heed/nn/seq2seq.h"
#include "nn/seq2seq_checks.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

RecurrentSeq2SeqConfig checked(const RecurrentSeq2SeqConfig& config) {
  check_sizes("RecurrentSeq2Seq", {{"src_vocab_size", config.src_vocab_size},
                                   {"tgt_vocab_size", config.tgt_vocab_size},
                                   {"d_model", config.d_model},
                                   {"num_layers", config.num_layers}});
  check_even("RecurrentSeq2Seq", config.d_model);
  return config;
}

LuongScore luong_score(SourceAttention attention) {
  if (attention == SourceAttention::kDot) return LuongScore::kDot;
  return attention == SourceAttention::kGeneral ? LuongScore::kGeneral : LuongScore::kConcat;
}

// Puts the two directions of each layer side by side: [2 · layers, batch, d / 2] to [layers, batch,
// d].
template <class T>
Variable<T> joined_directions(const Variable<T>& state) {
  const std::int64_t layers = state.extent(0) / 2;
  const std::int64_t batch = state.extent(1);
  const std::int64_t width = state.extent(2);
  return reshape(permute(reshape(state, {layers, 2, batch, width}), {0, 2, 1, 3}),
                 {layers, batch, 2 * width});
}

}  // namespace

template <class T>
RecurrentSeq2Seq<T>::RecurrentSeq2Seq(const RecurrentSeq2SeqConfig& config)
    : config_(checked(config)),
      src_embedding_(this->template make_module<Embedding<T>>(
          "src_embedding", config.src_vocab_size, config.d_model)),
      tgt_embedding_(this->template make_module<Embedding<T>>(
          "tgt_embedding", config.tgt_vocab_size, config.d_model)),
      encoder_lstm_(this->template make_module<LSTM<T>>(
          "encoder_lstm", config.d_model, config.d_model / 2,
          LstmOptions{
              .num_layers = config.num_layers, .dropout = config.dropout, .bidirectional = true})),
      decoder_lstm_(this->template make_module<LSTM<T>>(
          "decoder_lstm", config.d_model, config.d_model,
          LstmOptions{.num_layers = config.num_layers, .dropout = config.dropout})) {
  const std::int64_t d_model = config.d_model;
  if (config.attention == SourceAttention::kAdditive) {
    additive_ =
        &this->template make_module<AdditiveAttention<T>>("attention", d_model, d_model, d_model);
  } else if (config.attention != SourceAttention::kNone) {
    multiplicative_ = &this->template make_module<MultiplicativeAttention<T>>(
        "attention", d_model, d_model, luong_score(config.attention));
  }
  combine_ = &this->template make_module<Linear<T>>("combine", 2 * d_model, d_model, false);
  output_projection_ =
      &this->template make_module<Linear<T>>("output_projection", d_model, config.tgt_vocab_size);
  dropout_ = &this->template make_module<Dropout<T>>("dropout", config.dropout);
}

template <class T>
Encoded<T> RecurrentSeq2Seq<T>::encode(TensorView<const std::int64_t> src,
                                       const std::vector<std::int64_t>& lengths) {
  check_ids("RecurrentSeq2Seq::encode", "src", src);
  check_lengths("RecurrentSeq2Seq::encode", src, lengths);
  auto [outputs, state] =
      encoder_lstm_.forward(dropout_->forward(src_embedding_.forward(src)), lengths);
  const Variable<T> hidden = joined_directions(state.hidden);
  return {outputs,
          lengths,
          select(hidden, 0, -1 + hidden.extent(0)),
          {{hidden, joined_directions(state.cell)}, 0},
          keys_of(outputs)};
}

template <class T>
Variable<T> RecurrentSeq2Seq<T>::keys_of(const Variable<T>& outputs) {
  if (additive_ != nullptr) return additive_->project(outputs);
  return multiplicative_ == nullptr ? Variable<T>() : multiplicative_->project(outputs);
}

template <class T>
SoftAlignment<T> RecurrentSeq2Seq<T>::align(const Encoded<T>& encoded, const Variable<T>& states) {
  const AlignmentSource<T> source{encoded.outputs, encoded.keys};
  if (additive_ != nullptr) return additive_->attend_to(source, states, encoded.lengths);
  if (multiplicative_ != nullptr) {
    return multiplicative_->attend_to(source, states, encoded.lengths);
  }
  const std::int64_t batch = states.extent(0);
  const Variable<T> summary = reshape(encoded.summary, {batch, 1, config_.d_model});
  return {broadcast_to(summary, states.shape()), {}};
}

template <class T>
Decoded<T> RecurrentSeq2Seq<T>::decode(TensorView<const std::int64_t> tgt,
                                       const Encoded<T>& encoded, const DecoderState<T>& state,
                                       bool return_attention) {
  check_batch("RecurrentSeq2Seq::decode", tgt, encoded.outputs.extent(0));
  auto [states, lstm_state] =
      decoder_lstm_.forward(dropout_->forward(tgt_embedding_.forward(tgt)), {}, state.lstm);
  const auto [context, weights] = align(encoded, states);
  const Variable<T> combined = tanh(combine_->forward(concat<T>({context, states}, -1)));
  Decoded<T> decoded{output_projection_->forward(dropout_->forward(combined)),
                     {},
                     {std::move(lstm_state), state.position + tgt.extent(1)}};
  if (return_attention && weights.is_defined()) {
    decoded.weights = to_tensor(weights.value())
                          .reshaped({tgt.extent(0), 1, tgt.extent(1), encoded.outputs.extent(1)});
  }
  return decoded;
}

template class RecurrentSeq2Seq<float>;
template class RecurrentSeq2Seq<double>;

}}}  // namespace heed::v0::nn
