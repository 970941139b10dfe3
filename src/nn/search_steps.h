// The common parts of greedy and beam search.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "heed/core/error.h"
#include "heed/nn/search.h"

namespace heed { inline namespace v0 { namespace nn {

// Puts a module in evaluation mode while this object exists.
template <class T>
class Evaluation {
 public:
  explicit Evaluation(Module<T>& module) : module_(module), was_training_(module.is_training()) {
    module.eval();
  }
  ~Evaluation() { module_.train(was_training_); }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  Module<T>& module_;
  bool was_training_;
};

// The attention weights of each token of a hypothesis, [num_heads, src_len] each.
template <class T>
using Looks = std::vector<Tensor<T>>;

// The weights of target `row`, of weights [targets, num_heads, src_len]; empty without attention.
template <class T>
Tensor<T> look_of(TensorView<const T> weights, std::int64_t row) {
  return weights.rank() == 3 ? to_tensor(weights.select(0, row)) : Tensor<T>();
}

// The tokens that a writer may write, in order, including the token that ends a target.
inline std::vector<std::int64_t> tokens_to_write(const char* function,
                                                 const ReservedTokens& reserved,
                                                 std::int64_t vocab_size) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t token = 0; token < vocab_size; ++token) {
    if (std::find(reserved.never.begin(), reserved.never.end(), token) == reserved.never.end()) {
      tokens.push_back(token);
    }
  }
  if (!tokens.empty()) return tokens;
  throw InvalidArgument(fmt::format(
      "{}: the vocabulary has {} tokens, none of which is to be written", function, vocab_size));
}

// Combines the looks to [num_heads, tokens, src_len].
template <class T>
Tensor<T> alignment_of(const Looks<T>& looks, std::size_t num_tokens) {
  if (num_tokens == 0 || looks.front().rank() != 2) return {};
  const std::int64_t num_heads = looks.front().extent(0);
  const std::int64_t src_len = looks.front().extent(1);
  const auto length = static_cast<std::int64_t>(num_tokens);
  auto result = Tensor<T>::uninitialized({num_heads, length, src_len});
  for (std::int64_t token = 0; token < length; ++token) {
    const T* look = looks[static_cast<std::size_t>(token)].data();
    for (std::int64_t head = 0; head < num_heads; ++head) {
      std::copy_n(look + head * src_len, src_len,
                  result.data() + (head * length + token) * src_len);
    }
  }
  return result;
}

}}}  // namespace heed::v0::nn
