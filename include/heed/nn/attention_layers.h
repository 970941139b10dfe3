/// Multi-head attention as a layer: one implementation, which the configurations of textbooks turn
/// into their layers, with the same parameter names drawn in the same order.
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

/// The options of one call of an attention layer; layers with a feature_map accept only
/// query_offset. Terms are variables, which own their elements; tensors that a mask or a score_mod
/// refers to must exist until backward().
template <class T = float>
struct AttendOptions {
  /// Broadcasts to [batch, num_heads, q_len, kv_len].
  Mask mask = {};
  ScoreMod score_mod = {};
  /// Terms of the scores, constant or learned. Slopes and tables replace those of the layer; tables
  /// are only for layers whose configuration has their buckets.
  LearnedTerms<T> terms = {};
  /// The position of query 0; that of key 0 is 0.
  std::int64_t query_offset = 0;
  /// If true, all weights are returned. Otherwise they are never stored.
  bool return_attention = false;
  /// Alternatively, returns the weights of these rows only.
  std::vector<AttentionRow> rows = {};
};

/// The result of an attention layer.
template <class T>
struct Attended {
  Variable<T> out;  ///< [batch, q_len, embed_dim]; of scaled_dot_product_attention as heads
  /// The factors of the values, after dropout: [batch, num_heads, q_len, kv_len] for
  /// return_attention (SelfAttention and SingleHeadAttention: [batch, q_len, kv_len]), [rows,
  /// kv_len] for rows, empty otherwise. Not part of the graph.
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

/// scaled_dot_product_attention() as a part of a model, without parameters.
template <class T = float>
class HEED_API ScaledDotProductAttention : public Module<T> {
 public:
  Attended<T> forward(const Variable<T>& query, const Variable<T>& key, const Variable<T>& value,
                      const AttendOptions<T>& options = {}, const heed::Dropout& dropout = {}) {
    return scaled_dot_product_attention(query, key, value, options, dropout);
  }
  std::string class_name() const override { return "ScaledDotProductAttention"; }
};

/// The operands and options of one call of attention in a layer.
template <class T>
struct AttentionCall {
  TensorView<const T> query;  ///< [batch, num_heads, q_len, head_dim], projected and rotated
  TensorView<const T> key;    ///< [batch, num_kv_heads, kv_len, head_dim], projected and rotated
  /// The options of the scores: the layer's mask and terms combined with the call's.
  const BasicAttentionOptions<T>& options;
};

/// The projected keys and values of a source, for several calls with the same source.
template <class T>
struct ProjectedSource {
  Variable<T> key;    ///< [batch, kv_len, num_kv_heads · head_dim]
  Variable<T> value;  ///< [batch, kv_len, num_kv_heads · head_dim]
};

template <class T>
class HEED_API CausalAttention;

/// out = out_proj(merge_heads(attention(split_heads(q_proj(query)), …))). Heads are read from and
/// written to the memory of the projections: splitting and merging them copies nothing.
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

  /// @param query [batch, q_len, embed_dim]
  /// @param key, value [batch, kv_len, embed_dim]
  /// @throws InvalidArgument when shapes do not fit, or different inputs have one projection.
  Attended<T> forward(const Variable<T>& query, const Variable<T>& key, const Variable<T>& value,
                      const AttendOptions<T>& options = {});
  /// Self-attention of x [batch, length, embed_dim].
  Attended<T> forward(const Variable<T>& x, const AttendOptions<T>& options = {}) {
    return forward(x, x, x, options);
  }

  /// An empty cache for the keys and values of continued().
  KvSequence make_past(const KvBounds& bounds = {}) const requires std::is_same_v<T, float> {
    return KvSequence({.num_kv_heads = num_kv_heads(), .head_dim = head_dim()}, bounds);
  }

  /// forward(x) of positions that follow those in `past`, to which it appends their keys (after
  /// rotation) and values: the time per token is linear in the length of the text. The layer's
  /// mask, terms and scale apply; there is no dropout, and nothing is recorded for backward().
  /// @param x [1, length, embed_dim]
  /// @param mask combined with the layer's own
  /// @throws InvalidArgument when shapes do not fit, or the layer has selected_blocks or a
  /// feature_map; OutOfPages. Then nothing was appended.
  Variable<T> continued(KvSequence& past, const Variable<T>& x,
                        const Mask& mask = {}) const requires std::is_same_v<T, float> {
    return continue_all(std::span(&past, 1), x, mask);
  }
  /// continued() of several texts, each with its own sequence. Pages that they share, as forks do,
  /// are read once.
  /// @param pasts of one pool and equally long, e.g. Past::layer()
  /// @param x [texts, length, embed_dim]
  Variable<T> continued(std::span<KvSequence> pasts, const Variable<T>& x,
                        const Mask& mask = {}) const requires std::is_same_v<T, float> {
    return continue_all(pasts, x, mask);
  }

  /// Calls `observer` with the operands of each later forward(); an empty function ends this.
  void observe(std::function<void(const AttentionCall<T>&)> observer) {
    observer_ = std::move(observer);
  }

  /// The keys and values of `source` [batch, kv_len, embed_dim]; attend_to(query, project(x))
  /// equals forward(query, x, x).
  /// @throws InvalidArgument when the shape does not fit, or one projection gives all three.
  ProjectedSource<T> project(const Variable<T>& source);
  Attended<T> attend_to(const Variable<T>& query, const ProjectedSource<T>& source,
                        const AttendOptions<T>& options = {});

  /// The projections of query, key, value and output: Q = x · W_Qᵀ.
  /// @throws InvalidArgument when one projection computes query, key and value, or there is no
  /// output projection.
  // NOLINTBEGIN(readability-identifier-naming): the names that the equations have
  const Linear<T>& W_Q() const { return input_projection(0); }
  const Linear<T>& W_K() const { return input_projection(1); }
  const Linear<T>& W_V() const { return input_projection(2); }
  const Linear<T>& W_O() const;
  // NOLINTEND(readability-identifier-naming)

  std::int64_t num_heads() const noexcept { return config_.num_heads; }
  std::int64_t num_kv_heads() const noexcept { return config_.num_kv_heads; }
  std::int64_t head_dim() const noexcept { return config_.head_dim; }
  /// The factor of the scores: 1/√head_dim by default.
  double scale() const noexcept;

  std::string class_name() const override { return config_.class_name; }

 private:
  friend class CausalAttention<T>;

  struct ProjectedHeads {
    Heads<T> query, key, value;
  };

  // The projected heads of self-attention.
  ProjectedHeads project_to_heads(const Variable<T>& x) const;
  void make_tables();
  // The layer's mask, terms and scale combined with the call's.
  BasicAttentionOptions<T> options_for(AttendOptions<T>& options,
                                       const heed::Dropout& dropout) const;
  void check_input(const Variable<T>& input) const;
  void check_three_projections() const;
  const Linear<T>& input_projection(std::size_t index) const;
  // Applies rotary positions from `first_position` on, if the layer has them.
  Heads<T> turned(const Heads<T>& heads, std::int64_t first_position) const;
  Attended<T> attend(const ProjectedHeads& heads, const AttendOptions<T>& given);
  // Throws where tokens are divided among ranks and the call needs all of them.
  void check_divides(const AttendOptions<T>& options) const;
  // For layers with a feature_map: throws where a call has options that they exclude.
  void check_asks_nothing(const AttendOptions<T>& options) const;
  Variable<T> projected_out(const Variable<T>& attended);
  Variable<T> continue_all(std::span<KvSequence> pasts, const Variable<T>& x,
                           const Mask& mask) const;

  AttentionConfig config_;
  std::vector<Linear<T>*> inputs_;
  Linear<T>* out_ = nullptr;
  Dropout<T>* weight_dropout_ = nullptr;
  Dropout<T>* out_dropout_ = nullptr;
  // Undefined where the layer has none. All but the parameters are constants, which are not part of
  // the state.
  Variable<T> alibi_slopes_;
  Variable<T> relative_bias_, relative_key_, relative_value_;  // parameters
  Variable<T> cos_;
  Variable<T> sin_;
  std::function<void(const AttentionCall<T>&)> observer_;
};

/// Observes all MultiHeadAttention layers of a model during its lifetime, except those with a
/// feature_map, which have no softmax.
template <class T = float>
class HEED_API AttentionObserver {
 public:
  using Observe = std::function<void(const std::string& layer, const AttentionCall<T>& call)>;

  /// `layer` is the full name of the layer, e.g. "blocks.0.attention". The model must outlive the
  /// observer.
  AttentionObserver(Module<T>& model, const Observe& observe);
  ~AttentionObserver();
  AttentionObserver(const AttentionObserver&) = delete;
  AttentionObserver& operator=(const AttentionObserver&) = delete;

 private:
  std::vector<MultiHeadAttention<T>*> layers_;
};

/// Projections W_q, W_k and W_v with biases, one head as wide as the input, no output projection.
template <class T = float>
class HEED_API SelfAttention : public MultiHeadAttention<T> {
 public:
  explicit SelfAttention(std::int64_t d_model);
};

/// Projections W_Q, W_K, W_V and W_O without biases, one head of head_dim, causal.
template <class T = float>
class HEED_API SingleHeadAttention : public MultiHeadAttention<T> {
 public:
  SingleHeadAttention(std::int64_t embed_dim, std::int64_t head_dim);
};

/// Causal self-attention over at most max_len positions: the layer `mha`, and the constant `mask`
/// [max_len, max_len], true above the diagonal, which is part of PyTorch's state.
template <class T = float>
class HEED_API CausalAttention : public Module<T> {
 public:
  /// x [batch, length, embed_dim]. @throws InvalidArgument when length exceeds max_len.
  Attended<T> forward(const Variable<T>& x, const AttendOptions<T>& options = {});

  /// The functions of MultiHeadAttention. @throws InvalidArgument also when positions exceed
  /// max_len.
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

/// The layer of cross_projections() with a causal mask.
template <class T = float>
class HEED_API CausalSelfAttention : public CausalAttention<T> {
 public:
  CausalSelfAttention(std::int64_t d_model, std::int64_t num_heads, std::int64_t max_len = 512,
                      double dropout = 0.1)
      : CausalAttention<T>(cross_projections(d_model, num_heads, dropout), max_len) {}
  std::string class_name() const override { return "CausalSelfAttention"; }
};

/// The layer of separate_projections() with a causal mask.
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
