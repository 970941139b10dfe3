#include "heed/nn/alignment_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "nn/divided_tokens.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

template <class T>
void check_states(const char* function, const Variable<T>& encoder, const Variable<T>& decoder,
                  const std::vector<std::int64_t>& src_lengths) {
  if (encoder.rank() != 3 || (decoder.rank() != 2 && decoder.rank() != 3) ||
      encoder.extent(0) != decoder.extent(0)) {
    throw InvalidArgument(
        fmt::format("{}: encoder_outputs has shape {} and decoder_hidden {}; expected [batch, "
                    "src_len, encoder_dim] and [batch, decoder_dim] or [batch, steps, decoder_dim]",
                    function, to_string(encoder.shape()), to_string(decoder.shape())));
  }
  if (src_lengths.empty()) return;
  if (static_cast<std::int64_t>(src_lengths.size()) != encoder.extent(0)) {
    throw InvalidArgument(fmt::format("{}: {} src_lengths are given for a batch of {}", function,
                                      src_lengths.size(), encoder.extent(0)));
  }
  for (const std::int64_t length : src_lengths) {
    if (length >= 0 && length <= encoder.extent(1)) continue;
    throw InvalidArgument(fmt::format("{}: a source's length is {}, expected 0 to {}", function,
                                      length, encoder.extent(1)));
  }
}

// Reshapes [batch, dim] to a single step, [batch, 1, dim].
template <class T>
Variable<T> as_steps(const Variable<T>& decoder) {
  return decoder.rank() == 3 ? decoder
                             : reshape(decoder, {decoder.extent(0), 1, decoder.extent(1)});
}

// Returns [batch, 1, src_len]: −∞ after each source's end, otherwise 0.
template <class T>
Variable<T> padding(const std::vector<std::int64_t>& src_lengths, std::int64_t src_len) {
  Tensor<T> result({static_cast<std::int64_t>(src_lengths.size()), 1, src_len});
  T* row = result.data();
  for (const std::int64_t length : src_lengths) {
    std::fill(row + length, row + src_len, -std::numeric_limits<T>::infinity());
    row += src_len;
  }
  return result;
}

// scores [batch, steps, src_len]. The results have a dimension of steps if `decoder` has one.
template <class T>
SoftAlignment<T> align(const Variable<T>& scores, const Variable<T>& encoder,
                       const Variable<T>& decoder, const std::vector<std::int64_t>& src_lengths) {
  refuse_divided("alignment");
  const Variable<T> weights =
      softmax(src_lengths.empty() ? scores : scores + padding<T>(src_lengths, encoder.extent(1)));
  const Variable<T> context = matmul(weights, encoder);
  if (decoder.rank() == 3) return {context, weights};
  const std::int64_t batch = encoder.extent(0);
  return {reshape(context, {batch, encoder.extent(2)}),
          reshape(weights, {batch, encoder.extent(1)})};
}

template <class T>
Variable<T> as_vector(const Variable<T>& row) {
  return reshape(row, {row.num_elements()});
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
SoftAlignment<T> AdditiveAttention<T>::forward(const Variable<T>& encoder_outputs,
                                               const Variable<T>& decoder_hidden,
                                               const std::vector<std::int64_t>& src_lengths) {
  check_states("AdditiveAttention", encoder_outputs, decoder_hidden, src_lengths);
  return attend_to({encoder_outputs, project(encoder_outputs)}, decoder_hidden, src_lengths);
}

template <class T>
Variable<T> AdditiveAttention<T>::project(const Variable<T>& encoder_outputs) {
  return encoder_projection_.forward(encoder_outputs);
}

template <class T>
SoftAlignment<T> AdditiveAttention<T>::attend_to(const AlignmentSource<T>& source,
                                                 const Variable<T>& decoder_hidden,
                                                 const std::vector<std::int64_t>& src_lengths) {
  check_states("AdditiveAttention", source.encoder_outputs, decoder_hidden, src_lengths);
  const Variable<T> scores =
      additive_scores(source.keys, as_steps(decoder_projection_.forward(decoder_hidden)),
                      as_vector(score_.weight()));
  return align(scores, source.encoder_outputs, decoder_hidden, src_lengths);
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

// kConcat: W [h; s] = W_h h + W_s s, so that no pair is materialised.
template <class T>
Variable<T> MultiplicativeAttention<T>::project(const Variable<T>& encoder_outputs) {
  if (method_ != LuongScore::kConcat) return encoder_outputs;
  const Variable<T>& weight = projection_->weight();
  return linear(encoder_outputs, slice(weight, 1, 0, encoder_outputs.extent(-1)));
}

template <class T>
Variable<T> MultiplicativeAttention<T>::scores(const Variable<T>& keys,
                                               const Variable<T>& decoder_states) {
  if (method_ == LuongScore::kConcat) {
    const Variable<T>& weight = projection_->weight();
    const std::int64_t width = weight.extent(1);
    return additive_scores(
        keys, linear(decoder_states, slice(weight, 1, width - decoder_states.extent(2), width)),
        as_vector(score_->weight()));
  }
  return matmul(projection_ == nullptr ? decoder_states : projection_->forward(decoder_states),
                transpose(keys));
}

template <class T>
SoftAlignment<T> MultiplicativeAttention<T>::forward(const Variable<T>& encoder_outputs,
                                                     const Variable<T>& decoder_hidden,
                                                     const std::vector<std::int64_t>& src_lengths) {
  check_states("MultiplicativeAttention", encoder_outputs, decoder_hidden, src_lengths);
  return attend_to({encoder_outputs, project(encoder_outputs)}, decoder_hidden, src_lengths);
}

template <class T>
SoftAlignment<T> MultiplicativeAttention<T>::attend_to(
    const AlignmentSource<T>& source, const Variable<T>& decoder_hidden,
    const std::vector<std::int64_t>& src_lengths) {
  check_states("MultiplicativeAttention", source.encoder_outputs, decoder_hidden, src_lengths);
  return align(scores(source.keys, as_steps(decoder_hidden)), source.encoder_outputs,
               decoder_hidden, src_lengths);
}

template class AdditiveAttention<float>;
template class AdditiveAttention<double>;
template class MultiplicativeAttention<float>;
template class MultiplicativeAttention<double>;

}}}  // namespace heed::v0::nn
