/// Functions of variables. Each computes its value and, unless NoGrad forbids it, remembers how a
/// gradient passes through it. T is float or double; sums run in double.
///
/// All throw InvalidArgument when shapes do not fit, before anything is computed. Dimensions may
/// count from the end: −1 is the innermost.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/rotary.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/nn/variable.h"

namespace heed { inline namespace v0 { namespace nn {

// ---- arithmetic; shapes broadcast, aligned at the right, as in PyTorch

template <class T>
HEED_API Variable<T> add(const Variable<T>& a, const Variable<T>& b);
template <class T>
HEED_API Variable<T> sub(const Variable<T>& a, const Variable<T>& b);
template <class T>
HEED_API Variable<T> mul(const Variable<T>& a, const Variable<T>& b);
/// factor · x
template <class T>
HEED_API Variable<T> scale(const Variable<T>& x, double factor);

template <class T>
Variable<T> operator+(const Variable<T>& a, const Variable<T>& b) {
  return add(a, b);
}
template <class T>
Variable<T> operator-(const Variable<T>& a, const Variable<T>& b) {
  return sub(a, b);
}
template <class T>
Variable<T> operator*(const Variable<T>& a, const Variable<T>& b) {
  return mul(a, b);
}
template <class T>
Variable<T> operator*(const Variable<T>& x, double factor) {
  return scale(x, factor);
}
template <class T>
Variable<T> operator*(double factor, const Variable<T>& x) {
  return scale(x, factor);
}

// ---- matrices

/// a [..., m, k] · b [..., k, n] = [..., m, n]; the dimensions in front broadcast.
template <class T>
HEED_API Variable<T> matmul(const Variable<T>& a, const Variable<T>& b);

/// x · weightᵀ + bias for x [..., in_features], weight [out_features, in_features] and bias
/// [out_features], or none.
template <class T>
HEED_API Variable<T> linear(const Variable<T>& x, const Variable<T>& weight,
                            const Variable<T>& bias = {});

// ---- the same elements elsewhere

/// Nothing is copied.
template <class T>
HEED_API Variable<T> reshape(const Variable<T>& x, const Shape& shape);
/// Dimension i of the result is dimension order[i] of x.
template <class T>
HEED_API Variable<T> permute(const Variable<T>& x, std::initializer_list<int> order);
/// The last two dimensions exchanged.
template <class T>
HEED_API Variable<T> transpose(const Variable<T>& x);
/// x repeated along the dimensions in which it has extent 1 or none.
template <class T>
HEED_API Variable<T> broadcast_to(const Variable<T>& x, const Shape& shape);
/// The indices begin ≤ i < end of a dimension.
template <class T>
HEED_API Variable<T> slice(const Variable<T>& x, int dim, std::int64_t begin, std::int64_t end);
/// Index `index` of a dimension, which the result lacks.
template <class T>
HEED_API Variable<T> select(const Variable<T>& x, int dim, std::int64_t index);
/// Parts of `size` along a dimension, the last perhaps smaller: torch.split.
template <class T>
HEED_API std::vector<Variable<T>> split(const Variable<T>& x, std::int64_t size, int dim = -1);
/// Side by side along a dimension: torch.cat.
template <class T>
HEED_API Variable<T> concat(const std::vector<Variable<T>>& parts, int dim = -1);
/// Along a new dimension: torch.stack.
template <class T>
HEED_API Variable<T> stack(const std::vector<Variable<T>>& parts, int dim = 0);

// ---- element by element

template <class T>
HEED_API Variable<T> relu(const Variable<T>& x);
template <class T>
HEED_API Variable<T> tanh(const Variable<T>& x);
/// 1 / (1 + exp(−x))
template <class T>
HEED_API Variable<T> sigmoid(const Variable<T>& x);
template <class T>
HEED_API Variable<T> exp(const Variable<T>& x);
template <class T>
HEED_API Variable<T> log(const Variable<T>& x);
/// Each element becomes 0 with the given probability, or else is divided by 1 − probability. Which
/// ones is a function of the seed and of their index; see Dropout.
template <class T>
HEED_API Variable<T> dropout(const Variable<T>& x, const heed::Dropout& dropout);

// ---- over the last dimension

/// exp(xᵢ) / Σⱼ exp(xⱼ); a row of −infinity gives 0.
template <class T>
HEED_API Variable<T> softmax(const Variable<T>& x);
/// xᵢ − log Σⱼ exp(xⱼ)
template <class T>
HEED_API Variable<T> log_softmax(const Variable<T>& x);

/// The target that no loss is taken of.
inline constexpr std::int64_t kIgnoreIndex = -100;

/// The mean of −log_softmax(logits)[target] over the targets that are not `ignore_index`.
/// @param logits  [..., classes]; the classes come last, whatever the rank
/// @param targets [...], each below `classes`
/// @return one element. Where PyTorch returns NaN because no target counts, InvalidArgument is
/// thrown.
template <class T>
HEED_API Variable<T> cross_entropy(const Variable<T>& logits,
                                   TensorView<const std::int64_t> targets,
                                   std::int64_t ignore_index = kIgnoreIndex);

/// (x − mean) / √(variance + eps) · weight + bias over the last dimensions, which have weight's
/// shape; the variance is Σ (x − mean)² / n. Source: Ba et al., "Layer Normalization", 2016.
template <class T>
HEED_API Variable<T> layer_norm(const Variable<T>& x, const Variable<T>& weight,
                                const Variable<T>& bias, double eps = 1e-5);

// ---- tables and sums

/// The rows of `table` [num_embeddings, embedding_dim] that ids [...] name: [..., embedding_dim].
/// The row `padding_idx` receives no gradient.
template <class T>
HEED_API Variable<T> embedding(TensorView<const std::int64_t> ids, const Variable<T>& table,
                               std::optional<std::int64_t> padding_idx = std::nullopt);
/// The sum of all elements, of rank 0.
template <class T>
HEED_API Variable<T> sum(const Variable<T>& x);
/// The mean of all elements, of rank 0. @throws InvalidArgument when there are none.
template <class T>
HEED_API Variable<T> mean(const Variable<T>& x);

// ---- attention

/// Terms of attention that can be learned, in place of the options' own.
template <class T>
struct LearnedTerms {
  Variable<T> alibi_slopes = {};  ///< [num_heads]
  Variable<T> bias = {};          ///< broadcasts to [batch, num_heads, q_len, kv_len]
  Variable<T> sinks = {};         ///< [num_heads]
  /// The tables of the options' relative_bias and relative_vectors, which say their buckets.
  Variable<T> relative_bias = {};
  Variable<T> relative_key = {};
  Variable<T> relative_value = {};
};

/// scoreₜₛ = Σₐ weightₐ · tanh(keysₛₐ + queriesₜₐ), the scores of additive attention, for keys
/// [batch, kv_len, dim], queries [batch, q_len, dim] and weight [dim]: [batch, q_len, kv_len]. No
/// tensor of q_len · kv_len · dim elements is ever made.
template <class T>
HEED_API Variable<T> additive_scores(const Variable<T>& keys, const Variable<T>& queries,
                                     const Variable<T>& weight);

/// Where heads lie side by side: head h in the columns from first + h · head_dim on.
struct HeadColumns {
  std::int64_t num_heads = 1;
  std::int64_t head_dim = 0;
  std::int64_t first = 0;

  std::int64_t width() const noexcept { return num_heads * head_dim; }
  std::int64_t end() const noexcept { return first + width(); }
};

/// An operand of attention: heads as a projection makes them, in the columns of a variable.
/// Attention reads them there and no copy is made, so that one projection may hold query, key and
/// value.
template <class T>
struct Heads {
  /// [batch, length, width]; or heads apart, [batch, num_heads, length, head_dim], all of them,
  /// whatever `columns` says.
  Variable<T> source;
  HeadColumns columns = {};

  /// [batch, num_heads, length, head_dim]. @throws InvalidArgument when the columns do not exist.
  HEED_API TensorView<const T> view() const&;
  void view() const&& HEED_DELETED("name it first: it may end before the result");
};

/// heed::attention of variables: query [batch, num_heads, q_len, head_dim], key and value
/// [batch, num_kv_heads, kv_len, ...]. Gradients go to all three and to `learned`. The options' own
/// slopes, bias, sinks and tables get none; what is recorded has copies of them. What a mask or a
/// score_mod refers to must live until backward().
template <class T>
HEED_API Variable<T> attention(const Variable<T>& query, const Variable<T>& key,
                               const Variable<T>& value,
                               const BasicAttentionOptions<T>& options = {},
                               const LearnedTerms<T>& learned = {});
/// The same of heads. Where the query's are columns, so are those of the result:
/// [batch, q_len, num_heads · value_dim]. Gradients take one pass into the columns that they
/// belong to.
template <class T>
HEED_API Variable<T> attention(const Heads<T>& query, const Heads<T>& key, const Heads<T>& value,
                               const BasicAttentionOptions<T>& options = {},
                               const LearnedTerms<T>& learned = {});

/// heed::feature_map_attention of heads: columns where the query's are, [batch, q_len,
/// num_heads · value_dim]. Gradients go to all three.
template <class T>
HEED_API Variable<T> feature_map_attention(const Heads<T>& query, const Heads<T>& key,
                                           const Heads<T>& value,
                                           const FeatureMapOptions& options = {});

/// heed::rotary_embedding of variables: x [batch, num_heads, length, head_dim], or [batch, length,
/// num_heads · head_dim] with options.num_heads. cos and sin, [max_len, rotary_dim / 2], must not
/// require gradients. What is recorded has a copy of the positions.
template <class T>
HEED_API Variable<T> rotary_embedding(const Variable<T>& x, const Variable<T>& cos,
                                      const Variable<T>& sin, RotaryPairing pairing,
                                      const RotaryOptions& options = {});
/// The same of heads: other heads of as many columns, which are all that their source has.
/// `options` has no num_heads, which `x` says.
template <class T>
HEED_API Heads<T> rotary_embedding(const Heads<T>& x, const Variable<T>& cos,
                                   const Variable<T>& sin, RotaryPairing pairing,
                                   const RotaryOptions& options = {});

extern template struct Heads<float>;
extern template struct Heads<double>;

}}}  // namespace heed::v0::nn
