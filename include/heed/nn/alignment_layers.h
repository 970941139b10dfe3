/// The attention of sequence-to-sequence models before transformers: decoder states attend to all
/// encoder states.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/layers.h"

namespace heed { inline namespace v0 { namespace nn {

/// The result of attention to encoder states, a soft alignment (Bahdanau et al., 2015). For several
/// decoder steps both tensors have a dimension of steps after the batch.
template <class T>
struct SoftAlignment {
  Variable<T> context;  ///< [batch, encoder_dim]: Σ weights · encoder_outputs
  Variable<T> weights;  ///< [batch, src_len], part of the graph
};

/// A projected source, for several calls with the same source.
template <class T>
struct AlignmentSource {
  Variable<T> encoder_outputs;  ///< [batch, src_len, encoder_dim]
  Variable<T> keys;             ///< [batch, src_len, …]: project(encoder_outputs)
};

/// score = vᵀ · tanh(W1 · encoder + W2 · decoder), without biases.
///
/// Source: Bahdanau et al., "Neural Machine Translation by Jointly Learning to Align and
/// Translate", 2014.
template <class T = float>
class HEED_API AdditiveAttention : public Module<T> {
 public:
  /// @throws InvalidArgument when a size is negative.
  AdditiveAttention(std::int64_t encoder_dim, std::int64_t decoder_dim, std::int64_t attention_dim);

  /// @param encoder_outputs [batch, src_len, encoder_dim]
  /// @param decoder_hidden  [batch, decoder_dim], or for several steps [batch, steps, decoder_dim]
  /// @param src_lengths     the number of states of each sequence that count; empty: all. The
  /// others have weight 0; a sequence of length 0 has weights and context 0.
  /// @throws InvalidArgument when shapes or lengths do not fit.
  SoftAlignment<T> forward(const Variable<T>& encoder_outputs, const Variable<T>& decoder_hidden,
                           const std::vector<std::int64_t>& src_lengths = {});
  /// The keys of encoder_outputs: W1 · encoder. attend_to({h, project(h)}, s) equals forward(h, s).
  Variable<T> project(const Variable<T>& encoder_outputs);
  SoftAlignment<T> attend_to(const AlignmentSource<T>& source, const Variable<T>& decoder_hidden,
                             const std::vector<std::int64_t>& src_lengths = {});
  std::string class_name() const override { return "AdditiveAttention"; }

 private:
  Linear<T>& encoder_projection_;
  Linear<T>& decoder_projection_;
  Linear<T>& score_;
};

/// The scores of encoder state h for decoder state s.
enum class LuongScore {
  kDot,      ///< h · s
  kGeneral,  ///< h · W s
  kConcat,   ///< vᵀ · tanh(W [h; s])
};

/// Attention with one of the scores of LuongScore. Source: Luong et al., "Effective Approaches to
/// Attention-based Neural Machine Translation", 2015.
template <class T = float>
class HEED_API MultiplicativeAttention : public Module<T> {
 public:
  /// @throws InvalidArgument when a size is negative, or the sizes differ for kDot.
  MultiplicativeAttention(std::int64_t encoder_dim, std::int64_t decoder_dim,
                          LuongScore method = LuongScore::kGeneral);

  /// As AdditiveAttention::forward().
  SoftAlignment<T> forward(const Variable<T>& encoder_outputs, const Variable<T>& decoder_hidden,
                           const std::vector<std::int64_t>& src_lengths = {});
  /// The keys of encoder_outputs: W [h; 0] for kConcat, otherwise the outputs themselves.
  /// attend_to({h, project(h)}, s) equals forward(h, s).
  Variable<T> project(const Variable<T>& encoder_outputs);
  SoftAlignment<T> attend_to(const AlignmentSource<T>& source, const Variable<T>& decoder_hidden,
                             const std::vector<std::int64_t>& src_lengths = {});
  std::string class_name() const override { return "MultiplicativeAttention"; }

 private:
  // decoder states [batch, steps, decoder_dim]: scores [batch, steps, src_len]
  Variable<T> scores(const Variable<T>& keys, const Variable<T>& decoder_states);

  LuongScore method_;
  Linear<T>* projection_ = nullptr;
  Linear<T>* score_ = nullptr;
};

extern template class AdditiveAttention<float>;
extern template class AdditiveAttention<double>;
extern template class MultiplicativeAttention<float>;
extern template class MultiplicativeAttention<double>;

}}}  // namespace heed::v0::nn
