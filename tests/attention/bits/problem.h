// Attention problems, drawn portably: sizes, options and memory layouts.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "attention/bits/draws.h"
#include "heed/attention.h"
#include "heed/attention/mask.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed::bits {

struct Sizes {
  std::int64_t batch = 1;
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t q_len = 1;
  std::int64_t kv_len = 1;
  std::int64_t head_dim = 16;
  std::int64_t value_dim = 16;
};

// The features of a call besides its shapes. The numbers determine what is drawn: add new ones
// last.
enum class Feature {
  kTopLeft,      // causal
  kBottomRight,  // causal
  kWindow,
  kPrefix,
  kKeyLengths,
  kCacheLengths,  // causal, where caches are filled to different lengths
  kDocuments,
  kRows,      // a mask of ranges
  kAllow,     // booleans, different for each head or batch entry
  kAdditive,  // added numbers, some −infinity
  kPadding,
  kWhere,
  kSoftcap,
  kScoreMod,
  kAlibi,
  kBias,
  kSinks,
  kScale,
  kDropout,
  kOffset,
  kHiddenNaN,    // in keys and values that no query sees
  kLargeScores,  // beyond 2¹⁸
  kLowScores,    // an additive mask of −1e9, in some rows on every key
  kSteepScores,  // of some tens, so that a row's offset changes from tile to tile
};
inline constexpr int kNumFeatures = static_cast<int>(Feature::kSteepScores) + 1;

// Everything that determines a problem.
struct Setup {
  Sizes sizes;
  std::vector<Feature> features;
  std::uint64_t seed = 0;

  bool has(Feature feature) const;
};

// Draws awkward sizes that suit the features, with at most one and a half million products.
Setup draw_setup(std::vector<Feature> features, std::uint64_t seed);

// Returns "2x6/3 q 129 kv 257 d 64/80 window + softcap": batch, heads / key heads, lengths, dims,
// features.
std::string to_string(const Setup& setup);

// The options and the memory that they refer to. With `any_length` nothing depends on q_len and
// kv_len, as packed sequences require.
template <class Real>
class DrawnOptions {
 public:
  DrawnOptions(const Setup& setup, bool any_length);
  DrawnOptions(const DrawnOptions&) = delete;
  DrawnOptions& operator=(const DrawnOptions&) = delete;

  const BasicAttentionOptions<Real>& operator*() const { return options_; }
  const BasicAttentionOptions<Real>* operator->() const { return &options_; }

 private:
  void add(Feature feature);
  void add_term(Feature feature);
  Mask alignment_mask(Feature feature);
  Mask tensor_mask(Feature feature);
  std::vector<std::int64_t> key_lengths_of_batch();
  Tensor<float> low_scores() const;
  template <class T>
  TensorView<const T> broadcastable(std::deque<Tensor<T>>& memory, T (*draw)(Draws&));

  Setup setup_;
  bool any_length_;
  Draws draws_;
  std::deque<Tensor<Real>> reals_;
  std::deque<Tensor<float>> floats_;
  std::deque<Tensor<bool>> flags_;
  BasicAttentionOptions<Real> options_;
};

// Returns the number of last keys that no query sees in problems with hidden NaN.
std::int64_t hidden_keys(const Sizes& sizes);

// The type in which T is computed.
template <class T>
using RealOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Tensors in drawn layouts, and options. T is float, double, Float16 or BFloat16.
template <class T>
class Problem {
 public:
  explicit Problem(const Setup& setup);
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  TensorView<const T> query() const { return query_; }
  TensorView<const T> key() const { return key_; }
  TensorView<const T> value() const { return value_; }
  TensorView<const T> grad_out() const { return grad_out_; }
  const BasicAttentionOptions<RealOf<T>>& options() const { return *options_; }

 private:
  TensorView<T> laid_out(const Shape& shape);

  Draws draws_;
  std::deque<Tensor<T>> memory_;
  TensorView<T> query_;
  TensorView<T> key_;
  TensorView<T> value_;
  TensorView<T> grad_out_;
  DrawnOptions<RealOf<T>> options_;
};

extern template class DrawnOptions<float>;
extern template class DrawnOptions<double>;
extern template class Problem<float>;
extern template class Problem<double>;
extern template class Problem<Float16>;
extern template class Problem<BFloat16>;

}  // namespace heed::bits
