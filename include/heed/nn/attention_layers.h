/// Multi-head attention as a layer: one implementation, and the configurations under which it is
/// the one that a textbook defines, with the same parameter names drawn in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/kv_cache.h"
#include "heed/attention/statistics.h"
#include "heed/core/config.h"
#include "heed/nn/attention_config.h"
#include "heed/nn/layers.h"
#include "heed/nn/ops.h"

namespace heed { inline namespace v0 { namespace nn {

/// What one call asks of an attention layer; layers with a feature_map take only query_offset.
/// Terms are variables, which own what they hold; what a mask or a score_mod refers to must live
/// until backward().
template <class T = float>
struct AttendOptions {
  /// Broadcasts to [batch, num_heads, q_len, kv_len].
  Mask mask = {};
  ScoreMod score_mod = {};
  /// Terms, constant or to be learned. Slopes and tables take the place of the layer's own; tables
  /// are for layers that are configured with their buckets.
  LearnedTerms<T> terms = {};
  /// The position of query 0; that of key 0 is 0.
  std::int64_t query_offset = 0;
  /// Whether to return every weight. Without weights, none is ever kept in memory.
  bool return_attention = false;
  /// Or the weights of these rows only.
  std::vector<AttentionRow> rows = {};
};

/// What an attention layer computed.
template <class T>
struct Attended {
  Variable<T> out;  ///< [batch, q_len, embed_dim]; of scaled_dot_product_attention as heads
  /// What the values were multiplied by, dropout included: [batch, num_heads, q_len, kv_len] for
  /// return_attention (SelfAttention and SingleHeadAttention: [batch, q_len, kv_len]),
  /// [rows, kv_len] for rows, empty otherwise. A look, not part of the graph.
  Tensor<T> weights;
};

/// attention(query, key, value) of heads [batch, num_heads, length, head_dim], with dropout on the
/// weights.
/// @throws InvalidArgument when shapes do not fit.
template <class T>
HEED_API Attended<T> scaled_dot_product_attention(const Variable<T>& query, const Variable<T>& key,
                                                  const Variable<T>& value,
                                                  const AttendOptions<T>& options = {},
                                                  const heed::Dropout& dropout = {});

/// The same as a part of a model that has no parameters.
template <class T = float>
class HEED_API ScaledDotProductAttention : public Module<T> {
 public:
  Attended<T> forward(const Variable<T>& query, const Variable<T>& key, const Variable<T>& value,
                      const AttendOptions<T>& options = {}, const heed::Dropout& dropout = {}) {
    return scaled_dot_product_attention(query, key, value, options, dropout);
  }
  std::string class_name() const override { return "ScaledDotProductAttention"; }
};

/// What an attention layer attends with in one call.
template <class T>
struct AttentionCall {
  TensorView<const T> query;  ///< [batch, num_heads, q_len, head_dim], projected and turned
  TensorView<const T> key;    ///< [batch, num_kv_heads, kv_len, head_dim], projected and turned
  /// Everything that is done to the scores: the layer's mask and terms, and the call's.
  const BasicAttentionOptions<T>& options;
};

/// What a layer looks at, projected: for calls that look at the same source again and again.
template <class T>
struct ProjectedSource {
  Variable<T> key;    ///< [batch, kv_len, num_kv_heads · head_dim]
  Variable<T> value;  ///< of the same shape
};

template <class T>
class HEED_API CausalAttention;

/// out = out_proj(merge_heads(attention(split_heads(q_proj(query)), …))), where heads are read and
/// written as they lie in the projections: nothing is copied to split or to merge them.
///
/// Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2.
template <class T = float>
class HEED_API MultiHeadAttention : public Module<T> {
 public:
  /// Draws the projections of query, key, value and output in that order.
  /// @throws InvalidArgument when the configuration does not fit; see resolved().
  explicit MultiHeadAttention(const AttentionConfig& config);
  /// The layer of separate_projections(embed_dim, num_heads), without dropout.
  MultiHeadAttention(std::int64_t embed_dim, std::int64_t num_heads)
      : MultiHeadAttention(separate_projections(embed_dim, num_heads)) {}

  /// query [batch, q_len, embed_dim], key and value [batch, kv_len, embed_dim].
  /// @throws InvalidArgument when shapes do not fit, or inputs differ that have one projection.
  Attended<T> forward(const Variable<T>& query, const Variable<T>& key, const Variable<T>& value,
                      const AttendOptions<T>& options = {});
  /// Self-attention.
  Attended<T> forward(const Variable<T>& x, const AttendOptions<T>& options = {}) {
    return forward(x, x, x, options);
  }

  /// An empty sequence for what this layer keeps in continued().
  KvSequence make_past(const KvBounds& bounds = {}) const requires std::is_same_v<T, float> {
    return KvSequence({.num_kv_heads = num_kv_heads(), .head_dim = head_dim()}, bounds);
  }

  /// forward(x) of positions that follow those of `past`, to which their keys (turned, where the
  /// layer has rotary positions) and values are appended: a text costs its length a token, not its
  /// square. The layer's mask, terms and scale apply; nothing is dropped and nothing is recorded.
  /// @param x [1, length, embed_dim]
  /// @param mask besides the layer's own
  /// @throws InvalidArgument when shapes do not fit, or the layer has selected_blocks or a
  /// feature_map; OutOfPages. Then nothing was appended.
  Variable<T> continued(KvSequence& past, const Variable<T>& x,
                        const Mask& mask = {}) const requires std::is_same_v<T, float> {
    return continue_all(std::span(&past, 1), x, mask);
  }
  /// The same of several texts, each with a sequence of its own: what they share, as forks do, is
  /// read once.
  /// @param pasts of one pool and equally long, e.g. Past::layer()
  /// @param x [texts, length, embed_dim]
  Variable<T> continued(std::span<KvSequence> pasts, const Variable<T>& x,
                        const Mask& mask = {}) const requires std::is_same_v<T, float> {
    return continue_all(pasts, x, mask);
  }

  /// Has each forward() show `observer` what it attends with; an empty function ends that.
  void observe(std::function<void(const AttentionCall<T>&)> observer) {
    observer_ = std::move(observer);
  }

  /// Keys and values of `source` [batch, kv_len, embed_dim]; attend_to(query, project(x)) is
  /// forward(query, x, x).
  /// @throws InvalidArgument when the shape does not fit, or one projection gives all three.
  ProjectedSource<T> project(const Variable<T>& source);
  Attended<T> attend_to(const Variable<T>& query, const ProjectedSource<T>& source,
                        const AttendOptions<T>& options = {});

  /// The projections of query, key, value and output, whatever their names: Q = x · W_Qᵀ.
  /// @throws InvalidArgument when one projection gives the first three, or there is none of the
  /// output.
  // NOLINTBEGIN(readability-identifier-naming): the names that the equations have
  const Linear<T>& W_Q() const { return input_projection(0); }
  const Linear<T>& W_K() const { return input_projection(1); }
  const Linear<T>& W_V() const { return input_projection(2); }
  const Linear<T>& W_O() const;
  // NOLINTEND(readability-identifier-naming)

  std::int64_t num_heads() const noexcept { return config_.num_heads; }
  std::int64_t num_kv_heads() const noexcept { return config_.num_kv_heads; }
  std::int64_t head_dim() const noexcept { return config_.head_dim; }
  /// What scores are multiplied by: 1/√head_dim, if nothing else is configured.
  double scale() const noexcept;

  std::string class_name() const override { return config_.class_name; }

 private:
  friend class CausalAttention<T>;

  struct ProjectedHeads {
    Heads<T> query, key, value;
  };

  // Of an input that is all three.
  ProjectedHeads project_to_heads(const Variable<T>& x) const;
  void make_tables();
  // The layer's mask, terms and scale, and the call's.
  BasicAttentionOptions<T> options_for(AttendOptions<T>& options,
                                       const heed::Dropout& dropout) const;
  void check_input(const Variable<T>& input) const;
  void check_three_projections() const;
  const Linear<T>& input_projection(std::size_t index) const;
  // With rotary positions from `first_position` on, if the layer has them.
  Heads<T> turned(const Heads<T>& heads, std::int64_t first_position) const;
  Attended<T> attend(const ProjectedHeads& heads, const AttendOptions<T>& given);
  // Throws where tokens are divided over ranks and the call would look at all of them.
  void check_divides(const AttendOptions<T>& options) const;
  // For layers with a feature_map: throws where a call asks what they do not have.
  void check_asks_nothing(const AttendOptions<T>& options) const;
  Variable<T> projected_out(const Variable<T>& attended);
  Variable<T> continue_all(std::span<KvSequence> pasts, const Variable<T>& x,
                           const Mask& mask) const;

  AttentionConfig config_;
  std::vector<Linear<T>*> inputs_;
  Linear<T>* out_ = nullptr;
  Dropout<T>* weight_dropout_ = nullptr;
  Dropout<T>* out_dropout_ = nullptr;
  // Not defined where the layer has none. But for the parameters, constants that are no part of the
  // state.
  Variable<T> alibi_slopes_;
  Variable<T> relative_bias_, relative_key_, relative_value_;  // parameters
  Variable<T> cos_;
  Variable<T> sin_;
  std::function<void(const AttentionCall<T>&)> observer_;
};

/// Observes every MultiHeadAttention of a model for as long as it lives, but for those with a
/// feature_map, which have no softmax to look at.
template <class T = float>
class HEED_API AttentionObserver {
 public:
  using Observe = std::function<void(const std::string& layer, const AttentionCall<T>& call)>;

  /// `layer` is the full name of the part, e.g. "blocks.0.attention". The model must live longer.
  AttentionObserver(Module<T>& model, const Observe& observe);
  ~AttentionObserver();
  AttentionObserver(const AttentionObserver&) = delete;
  AttentionObserver& operator=(const AttentionObserver&) = delete;

 private:
  std::vector<MultiHeadAttention<T>*> layers_;
};

/// W_q, W_k, W_v with biases, one head as wide as the input, no projection of the output.
template <class T = float>
class HEED_API SelfAttention : public MultiHeadAttention<T> {
 public:
  explicit SelfAttention(std::int64_t d_model);
};

/// W_Q, W_K, W_V, W_O without biases, one head of head_dim, causal.
template <class T = float>
class HEED_API SingleHeadAttention : public MultiHeadAttention<T> {
 public:
  SingleHeadAttention(std::int64_t embed_dim, std::int64_t head_dim);
};

/// Causal self-attention over at most max_len positions: the layer `mha` behind the constant
/// `mask` [max_len, max_len], true above the diagonal, which PyTorch keeps in the state.
template <class T = float>
class HEED_API CausalAttention : public Module<T> {
 public:
  /// x [batch, length, embed_dim]. @throws InvalidArgument when length exceeds max_len.
  Attended<T> forward(const Variable<T>& x, const AttendOptions<T>& options = {});

  /// As those of MultiHeadAttention. @throws InvalidArgument when positions end beyond max_len,
  /// too.
  KvSequence make_past(const KvBounds& bounds = {}) const requires std::is_same_v<T, float> {
    return KvSequence({.num_kv_heads = mha_.num_kv_heads(), .head_dim = mha_.head_dim()}, bounds);
  }
  Variable<T> continued(KvSequence& past, const Variable<T>& x,
                        const Mask& mask = {}) const requires std::is_same_v<T, float> {
    return continue_all(std::span(&past, 1), x, mask);
  }
  Variable<T> continued(std::span<KvSequence> pasts, const Variable<T>& x,
                        const Mask& mask = {}) const requires std::is_same_v<T, float> {
    return continue_all(pasts, x, mask);
  }

 protected:
  /// @throws InvalidArgument when max_len is negative.
  CausalAttention(const AttentionConfig& config, std::int64_t max_len);

 private:
  // x begins at position `first`.
  void check_length(const Variable<T>& x, std::int64_t first) const;
  Variable<T> continue_all(std::span<KvSequence> pasts, const Variable<T>& x,
                           const Mask& mask) const;

  MultiHeadAttention<T>& mha_;
  std::int64_t max_len_;
};

/// cross_projections behind a causal mask.
template <class T = float>
class HEED_API CausalSelfAttention : public CausalAttention<T> {
 public:
  CausalSelfAttention(std::int64_t d_model, std::int64_t num_heads, std::int64_t max_len = 512,
                      double dropout = 0.1)
      : CausalAttention<T>(cross_projections(d_model, num_heads, dropout), max_len) {}
  std::string class_name() const override { return "CausalSelfAttention"; }
};

/// separate_projections behind a causal mask.
template <class T = float>
class HEED_API CausalMultiHeadAttention : public CausalAttention<T> {
 public:
  CausalMultiHeadAttention(std::int64_t embed_dim, std::int64_t num_heads, std::int64_t max_seq_len,
                           double dropout)
      : CausalAttention<T>(separate_projections(embed_dim, num_heads, dropout), max_seq_len) {}
  std::string class_name() const override { return "CausalMultiHeadAttention"; }
};

extern template class ScaledDotProductAttention<float>;
extern template class ScaledDotProductAttention<double>;
extern template class MultiHeadAttention<float>;
extern template class MultiHeadAttention<double>;
extern template class AttentionObserver<float>;
extern template class AttentionObserver<double>;
extern template class SelfAttention<float>;
extern template class SelfAttention<double>;
extern template class SingleHeadAttention<float>;
extern template class SingleHeadAttention<double>;
extern template class CausalAttention<float>;
extern template class CausalAttention<double>;
extern template class CausalSelfAttention<float>;
extern template class CausalSelfAttention<double>;
extern template class CausalMultiHeadAttention<float>;
extern template class CausalMultiHeadAttention<double>;

}}}  // namespace heed::v0::nn
