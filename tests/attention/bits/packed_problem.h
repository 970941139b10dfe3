// Sequences of different lengths, packed one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/bits/problem.h"
#include "heed/attention/packed.h"

namespace heed::bits {

// True if all features of the setup apply to sequences of any length.
inline bool fits_packed(const Setup& setup) {
  return std::all_of(setup.features.begin(), setup.features.end(),
                     [](const Option* feature) { return feature->in_packed; });
}

template <class T>
class PackedProblem {
 public:
  explicit PackedProblem(const Setup& setup)
      : draws_(setup.seed + 5),
        options_(of_sequences(setup.sizes), setup.features, setup.seed, true) {
    const Sizes& s = setup.sizes;
    for (int i = 0; i < kNumSequences; ++i) {
      query_ends_.push_back(query_ends_.back() +
                            std::min(s.q_len, draws_.one_of<std::int64_t>({0, 1, 5, 48, 131})));
      key_ends_.push_back(key_ends_.back() + draws_.one_of<std::int64_t>({0, 1, 7, 129, 140}));
    }
    query_ = filled({query_ends_.back(), s.num_heads, s.head_dim});
    key_ = filled({key_ends_.back(), s.num_kv_heads, s.head_dim});
    value_ = filled({key_ends_.back(), s.num_kv_heads, s.value_dim});
    grad_out_ = filled({query_ends_.back(), s.num_heads, s.value_dim});
  }

  TensorView<const T> query() const { return query_; }
  TensorView<const T> key() const { return key_; }
  TensorView<const T> value() const { return value_; }
  TensorView<const T> grad_out() const { return grad_out_; }
  PackedSequences sequences() const { return {query_ends_, key_ends_}; }
  const AttentionOptions& options() const { return *options_; }

 private:
  static constexpr int kNumSequences = 4;

  static Sizes of_sequences(Sizes sizes) {
    sizes.batch = kNumSequences;
    return sizes;
  }

  // Puts heads before positions in memory in half of the cases.
  TensorView<T> filled(const Shape& shape) {
    if (draws_.below(2) == 0) {
      draws_.fill(memory_.emplace_back(shape));
      return memory_.back().view();
    }
    draws_.fill(memory_.emplace_back(Shape{shape[1], shape[0], shape[2]}));
    return memory_.back().view().permute({1, 0, 2});
  }

  Draws draws_;
  std::vector<std::int64_t> query_ends_{0};
  std::vector<std::int64_t> key_ends_{0};
  std::deque<Tensor<T>> memory_;
  TensorView<T> query_;
  TensorView<T> key_;
  TensorView<T> value_;
  TensorView<T> grad_out_;
  DrawnOptions<float> options_;
};

}  // namespace heed::bits
