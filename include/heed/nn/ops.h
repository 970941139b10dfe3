/// Functions of variables. Each computes its value and, unless NoGrad forbids it, records how to
/// compute the gradients of its inputs. T is float or double; sums are in double.
///
/// All throw InvalidArgument when shapes do not fit, before anything is computed. Negative
/// dimensions count from the end: −1 is the innermost.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/rotary.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/nn/variable.h"

namespace heed { inline namespace v0 { namespace nn {

// ---- arithmetic; shapes broadcast, aligned at the right, as in PyTorch

/// a + b, a − b, a ∘ b
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

/// a [..., m, k] · b [..., k, n] = [..., m, n]; the leading dimensions broadcast.
template <class T>
HEED_API Variable<T> matmul(const Variable<T>& a, const Variable<T>& b);

/// x · weightᵀ + bias, [..., out_features], for x [..., in_features], weight [out_features,
/// in_features] and bias [out_features], which may be undefined.
template <class T>
HEED_API Variable<T> linear(const Variable<T>& x, const Variable<T>& weight,
                            const Variable<T>& bias = {});

// ---- views and rearrangements

/// The same elements in another shape; nothing is copied.
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
/// The slice at `index` of a dimension, which the result lacks.
template <class T>
HEED_API Variable<T> select(const Variable<T>& x, int dim, std::int64_t index);
/// Parts of `size` along a dimension; the last may be smaller: torch.split.
template <class T>
HEED_API std::vector<Variable<T>> split(const Variable<T>& x, std::int64_t size, int dim = -1);
/// Concatenates along a dimension: torch.cat.
template <class T>
HEED_API Variable<T> concat(const std::vector<Variable<T>>& parts, int dim = -1);
/// Concatenates along a new dimension: torch.stack.
template <class T>
HEED_API Variable<T> stack(const std::vector<Variable<T>>& parts, int dim = 0);

// ---- element by element

/// max(x, 0)
template <class T>
HEED_API Variable<T> relu(const Variable<T>& x);
/// tanh x
template <class T>
HEED_API Variable<T> tanh(const Variable<T>& x);
/// 1 / (1 + exp(−x))
template <class T>
HEED_API Variable<T> sigmoid(const Variable<T>& x);
/// eˣ
template <class T>
HEED_API Variable<T> exp(const Variable<T>& x);
/// ln x
template <class T>
HEED_API Variable<T> log(const Variable<T>& x);
/// Sets each element to 0 with the given probability and divides the others by 1 − probability. The
/// choice is a function of the seed and the element's index; see Dropout.
template <class T>
HEED_API Variable<T> dropout(const Variable<T>& x, const heed::Dropout& dropout);

// ---- over the last dimension

/// exp(xᵢ) / Σⱼ exp(xⱼ); a row of only −infinity gives 0.
template <class T>
HEED_API Variable<T> softmax(const Variable<T>& x);
/// xᵢ − log Σⱼ exp(xⱼ)
template <class T>
HEED_API Variable<T> log_softmax(const Variable<T>& x);

/// The target that cross_entropy() ignores.
inline constexpr std::int64_t kIgnoreIndex = -100;

/// The mean of −log_softmax(logits)[target] over the targets that are not `ignore_index`.
/// @param logits  [..., classes], of any rank from 1
/// @param targets [...], each below `classes`
/// @return one element. @throws InvalidArgument when no target counts, where PyTorch returns NaN.
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

/// The rows of `table` [num_embeddings, embedding_dim] with the indices ids [...]: [...,
/// embedding_dim]. The row `padding_idx` receives no gradient.
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

/// Learned terms of attention, which replace the options' own. With tables, options.relative_bias
/// or options.relative_vectors must have the buckets.
template <class T>
using LearnedTerms = LearnedMembers<Variable<T>>;

/// The scores of additive attention, scoreₜₛ = Σₐ weightₐ · tanh(keysₛₐ + queriesₜₐ), for keys
/// [batch, kv_len, dim], queries [batch, q_len, dim] and weight [dim]: [batch, q_len, kv_len]. It
/// never makes a tensor of q_len · kv_len · dim elements.
template <class T>
HEED_API Variable<T> additive_scores(const Variable<T>& keys, const Variable<T>& queries,
                                     const Variable<T>& weight);

/// The columns of concatenated heads: head h has head_dim columns from first + h · head_dim on.
struct HeadColumns {
  std::int64_t num_heads = 1;
  std::int64_t head_dim = 0;
  std::int64_t first = 0;

  std::int64_t width() const noexcept { return num_heads * head_dim; }
  std::int64_t end() const noexcept { return first + width(); }
};

/// An operand of attention: heads in the columns of a projection's result. Attention reads them
/// there without a copy, so that one projection may compute query, key and value.
template <class T>
struct Heads {
  /// [batch, length, width]; or separate heads, [batch, num_heads, length, head_dim], all of which
  /// are used and `columns` ignored.
  Variable<T> source;
  HeadColumns columns = {};

  /// [batch, num_heads, length, head_dim]. @throws InvalidArgument when the columns do not exist.
  HEED_API TensorView<const T> view() const&;
  void view() const&& HEED_DELETED("name it first: it may end before the result");
};

/// heed::attention of variables: query [batch, num_heads, q_len, head_dim], key and value [batch,
/// num_kv_heads, kv_len, ...]. Gradients go to all three and to `learned`. The options' own slopes,
/// bias, sinks and tables get none, and are copied for the backward pass. Tensors that a mask or a
/// score_mod refers to must exist until backward().
template <class T>
HEED_API Variable<T> attention(const Variable<T>& query, const Variable<T>& key,
                               const Variable<T>& value,
                               const BasicAttentionOptions<T>& options = {},
                               const LearnedTerms<T>& learned = {});
/// attention() of heads. Where the query's heads are columns, the result has columns too: [batch,
/// q_len, num_heads · value_dim]. Gradients are written directly to the columns of their inputs.
template <class T>
HEED_API Variable<T> attention(const Heads<T>& query, const Heads<T>& key, const Heads<T>& value,
                               const BasicAttentionOptions<T>& options = {},
                               const LearnedTerms<T>& learned = {});

/// heed::feature_map_attention of heads. Where the query's heads are columns, the result is [batch,
/// q_len, num_heads · value_dim]. Gradients go to all three.
template <class T>
HEED_API Variable<T> feature_map_attention(const Heads<T>& query, const Heads<T>& key,
                                           const Heads<T>& value,
                                           const FeatureMapOptions& options = {});

/// heed::rotary_embedding of variables: x [batch, num_heads, length, head_dim], or [batch, length,
/// num_heads · head_dim] with options.num_heads. cos and sin, [max_len, rotary_dim / 2], must not
/// require gradients. The positions are copied for the backward pass.
template <class T>
HEED_API Variable<T> rotary_embedding(const Variable<T>& x, const Variable<T>& cos,
                                      const Variable<T>& sin, RotaryPairing pairing,
                                      const RotaryOptions& options = {});
/// rotary_embedding() of heads: the result has a source of its own with the columns of these heads
/// only. options.num_heads must not be set.
template <class T>
HEED_API Heads<T> rotary_embedding(const Heads<T>& x, const Variable<T>& cos,
                                   const Variable<T>& sin, RotaryPairing pairing,
                                   const RotaryOptions& options = {});

extern template struct Heads<float>;
extern template struct Heads<double>;

}}}  // namespace heed::v0::nn
