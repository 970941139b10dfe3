#include "heed/nn/alignment_layers.h"

#include <fmt/format.h>

namespace heed::inline v0::nn {

namespace {

template <class T>
void check_states(const char* function, const Variable<T>& encoder, const Variable<T>& decoder) {
  if (encoder.rank() == 3 && decoder.rank() == 2 && encoder.extent(0) == decoder.extent(0)) return;
  throw InvalidArgument(
      fmt::format("{}: encoder_outputs has shape {} and decoder_hidden {}; expected [batch, "
                  "src_len, encoder_dim] and [batch, decoder_dim]",
                  function, to_string(encoder.shape()), to_string(decoder.shape())));
}

// decoder_hidden [batch, dim] for every encoder state: [batch, 1, dim]
template <class T>
Variable<T> for_every_state(const Variable<T>& decoder) {
  return reshape(decoder, {decoder.extent(0), 1, decoder.extent(1)});
}

// scores of any shape with batch · src_len elements
template <class T>
Alignment<T> align(const Variable<T>& scores, const Variable<T>& encoder) {
  const std::int64_t batch = encoder.extent(0);
  const Variable<T> weights = softmax(reshape(scores, {batch, 1, encoder.extent(1)}));
  return {reshape(matmul(weights, encoder), {batch, encoder.extent(2)}),
          reshape(weights, {batch, encoder.extent(1)})};
}

}  // namespace

template <class T>
AdditiveAttention<T>::AdditiveAttention(std::int64_t encoder_dim, std::int64_t decoder_dim,
                                        std::int64_t attention_dim)
    : encoder_projection_(
          this->template make_module<Linear<T>>("W1", encoder_dim, attention_dim, false)),
      decoder_projection_(
          this->template make_module<Linear<T>>("W2", decoder_dim, attention_dim, false)),
      score_(this->template make_module<Linear<T>>("v", attention_dim, 1, false)) {}

template <class T>
Alignment<T> AdditiveAttention<T>::forward(const Variable<T>& encoder_outputs,
                                           const Variable<T>& decoder_hidden) {
  check_states("AdditiveAttention", encoder_outputs, decoder_hidden);
  const Variable<T> hidden = for_every_state(decoder_projection_.forward(decoder_hidden));
  return align(score_.forward(tanh(encoder_projection_.forward(encoder_outputs) + hidden)),
               encoder_outputs);
}

template <class T>
MultiplicativeAttention<T>::MultiplicativeAttention(std::int64_t encoder_dim,
                                                    std::int64_t decoder_dim, LuongScore method)
    : method_(method) {
  const auto linear_part = [this](const char* name, std::int64_t in, std::int64_t out) {
    return &this->template make_module<Linear<T>>(name, in, out, false);
  };
  switch (method) {
    case LuongScore::kDot:
      if (encoder_dim != decoder_dim) {
        throw InvalidArgument(fmt::format(
            "MultiplicativeAttention: encoder_dim is {} and decoder_dim {}; a dot product needs "
            "equal ones",
            encoder_dim, decoder_dim));
      }
      break;
    case LuongScore::kGeneral:
      projection_ = linear_part("W", decoder_dim, encoder_dim);
      break;
    case LuongScore::kConcat:
      projection_ = linear_part("W", encoder_dim + decoder_dim, decoder_dim);
      score_ = linear_part("v", decoder_dim, 1);
      break;
  }
}

template <class T>
Alignment<T> MultiplicativeAttention<T>::forward(const Variable<T>& encoder_outputs,
                                                 const Variable<T>& decoder_hidden) {
  check_states("MultiplicativeAttention", encoder_outputs, decoder_hidden);
  if (method_ == LuongScore::kConcat) {
    const Variable<T> hidden = broadcast_to(
        for_every_state(decoder_hidden),
        {encoder_outputs.extent(0), encoder_outputs.extent(1), decoder_hidden.extent(1)});
    const Variable<T> pairs = concat<T>({encoder_outputs, hidden}, -1);
    return align(score_->forward(tanh(projection_->forward(pairs))), encoder_outputs);
  }
  const Variable<T> hidden =
      projection_ == nullptr ? decoder_hidden : projection_->forward(decoder_hidden);
  return align(matmul(encoder_outputs, transpose(for_every_state(hidden))), encoder_outputs);
}

template class AdditiveAttention<float>;
template class AdditiveAttention<double>;
template class MultiplicativeAttention<float>;
template class MultiplicativeAttention<double>;

}  // namespace heed::inline v0::nn
