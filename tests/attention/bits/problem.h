// Attention problems, drawn portably: sizes, options and memory layouts.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/mask.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"
#include "support/options.h"

namespace heed::bits {

using testing_support::DrawnOptions;
using testing_support::Draws;
using testing_support::hidden_keys;
using testing_support::Option;
using testing_support::Options;
using testing_support::Sizes;

// The rows of the table of options that have bits. The place of a row determines what is drawn.
const Options& features();

// Everything that determines a problem.
struct Setup {
  Sizes sizes;
  Options features;
  std::uint64_t seed = 0;

  bool has(std::string_view feature) const { return testing_support::has(features, feature); }
};

// Draws awkward sizes that suit the features, with at most so many products.
Setup draw_setup(Options features, std::uint64_t seed, std::int64_t most_products = 1'500'000);

// Returns "2x6/3 q 129 kv 257 d 64/80 window + softcap": batch, heads / key heads, lengths, dims,
// features.
std::string to_string(const Setup& setup);

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

extern template class Problem<float>;
extern template class Problem<double>;
extern template class Problem<Float16>;
extern template class Problem<BFloat16>;

}  // namespace heed::bits
