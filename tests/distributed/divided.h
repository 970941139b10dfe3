// Attention of tokens divided among ranks of one process, with the results joined.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "heed/distributed/attention.h"
#include "heed/distributed/thread_ranks.h"
#include "support/tensors.h"

namespace heed::testing_support {

struct Lengths {
  std::int64_t q_len;
  std::int64_t kv_len;
  std::int64_t batch = 1;
  std::int64_t kv_heads = 2;
};

// Two query heads share a key head.
template <class T>
struct Operands {
  Tensor<T> query;
  Tensor<T> key;
  Tensor<T> value;
  Tensor<T> grad_out;

  explicit Operands(const Lengths& lengths)
      : query(numbers({lengths.batch, 2 * lengths.kv_heads, lengths.q_len, 8}, 1)),
        key(numbers({lengths.batch, lengths.kv_heads, lengths.kv_len, 8}, 2)),
        value(numbers({lengths.batch, lengths.kv_heads, lengths.kv_len, 12}, 3)),
        grad_out(numbers({lengths.batch, 2 * lengths.kv_heads, lengths.q_len, 12}, 4)) {}

 private:
  static Tensor<T> numbers(const Shape& shape, std::uint64_t seed) {
    return converted<T>(normal<float>(shape, seed));
  }
};

template <class T>
using LseOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The ranks and the division of a call.
struct Division {
  int size;
  distributed::DividedBy by = distributed::DividedBy::kTokens;
};

// Returns the joined results of the ranks.
template <class T>
AttentionOutput<T, LseOf<T>> divided_forward(const Operands<T>& in, const Division& division,
                                             const BasicAttentionOptions<LseOf<T>>& options) {
  AttentionOutput<T, LseOf<T>> whole;
  run_thread_ranks(division.size, [&](Communicator& ranks) {
    const auto own = distributed::attention_with_lse(
        {ranks, division.by}, distributed::own_tokens(ranks, TensorView<const T>(in.query)),
        distributed::own_tokens(ranks, TensorView<const T>(in.key)),
        distributed::own_tokens(ranks, TensorView<const T>(in.value)), options);
    auto out = distributed::gather_tokens(ranks, TensorView<const T>(own.out));
    auto lse = distributed::gather_tokens(ranks, TensorView<const LseOf<T>>(own.lse));
    auto low = distributed::gather_tokens(ranks, TensorView<const LseOf<T>>(own.lse_low));
    Tensor<T> rest;
    if (own.out_low.rank() == 4) {
      rest = distributed::gather_tokens(ranks, TensorView<const T>(own.out_low));
    }
    if (ranks.rank() == 0)
      whole = {std::move(out), std::move(lse), std::move(low), std::move(rest)};
  });
  return whole;
}

template <class T>
AttentionGradients<T, LseOf<T>> divided_backward(const Operands<T>& in,
                                                 const AttentionOutput<T, LseOf<T>>& forward,
                                                 const Division& division,
                                                 const BasicAttentionOptions<LseOf<T>>& options) {
  AttentionGradients<T, LseOf<T>> whole;
  run_thread_ranks(division.size, [&](Communicator& ranks) {
    const auto own = [&]<class Number>(const Tensor<Number>& tensor) {
      return distributed::own_tokens(ranks, TensorView<const Number>(tensor));
    };
    AttentionOutput<T, LseOf<T>> own_forward{own(forward.out), own(forward.lse),
                                             own(forward.lse_low)};
    if (forward.out_low.rank() == 4) own_forward.out_low = own(forward.out_low);
    auto part =
        distributed::attention_backward({ranks, division.by}, own(in.grad_out), own(in.query),
                                        own(in.key), own(in.value), own_forward, options);
    const auto gather = [&](Tensor<T>& tensor) {
      tensor = distributed::gather_tokens(ranks, TensorView<const T>(tensor));
    };
    gather(part.query);
    gather(part.key);
    gather(part.value);
    if (ranks.rank() == 0) whole = std::move(part);
  });
  return whole;
}

}  // namespace heed::testing_support
