// Sequence-to-sequence models: of recurrent layers, and of attention.
#include "heed/nn/seq2seq.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// One size of a model, and its name.
struct NamedSize {
  const char* name;
  std::int64_t size;
};

void check_sizes(const char* model, const std::vector<NamedSize>& sizes) {
  for (const auto& [name, size] : sizes) {
    if (size > 0) continue;
    throw InvalidArgument(
        fmt::format("{}: {} is {}, expected a positive number", model, name, size));
  }
}

void check_even(const char* model, std::int64_t d_model) {
  if (d_model % 2 == 0) return;
  throw InvalidArgument(fmt::format(
      "{}: d_model is {}, expected an even number: half for each direction", model, d_model));
}

// Checks ids [batch, length].
void check_ids(const char* function, const char* name, TensorView<const std::int64_t> ids) {
  if (ids.rank() == 2) return;
  throw InvalidArgument(fmt::format("{}: {} has shape {}, expected [batch, length]", function, name,
                                    to_string(ids.shape())));
}

// Checks that there is one length for each source, or none.
void check_lengths(const char* function, TensorView<const std::int64_t> src,
                   const std::vector<std::int64_t>& lengths) {
  if (lengths.empty()) return;
  if (static_cast<std::int64_t>(lengths.size()) != src.extent(0)) {
    throw InvalidArgument(fmt::format("{}: {} lengths are given for a batch of {}", function,
                                      lengths.size(), src.extent(0)));
  }
  for (const std::int64_t length : lengths) {
    if (length >= 0 && length <= src.extent(1)) continue;
    throw InvalidArgument(
        fmt::format("{}: a length is {}, expected 0 to {}", function, length, src.extent(1)));
  }
}

// Checks that encoder and decoder have the same batch.
void check_batch(const char* function, TensorView<const std::int64_t> tgt, std::int64_t batch) {
  check_ids(function, "tgt", tgt);
  if (tgt.extent(0) == batch) return;
  throw InvalidArgument(
      fmt::format("{}: tgt has {} sequences but {} were encoded", function, tgt.extent(0), batch));
}

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
