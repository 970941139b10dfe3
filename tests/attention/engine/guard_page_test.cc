// Inputs and outputs next to protected pages: nothing outside them is read or written.
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/parallel.h"
#include "support/fused.h"
#include "support/guarded_memory.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::Edge;
using testing_support::FaultReport;
using testing_support::GuardedMemory;
using testing_support::Inputs;
using testing_support::normal;
using testing_support::run_into;
using testing_support::same_bits;
using testing_support::Sizes;
using testing_support::TargetTest;

class GuardPages : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(GuardPages);

// Copies of tensors that touch a protected page on one side.
class Guarded {
 public:
  explicit Guarded(Edge edge) : edge_(edge) {}

  // Returns the elements of `tensor` as T, contiguous except for `padding` elements between
  // innermost rows. The last row has no padding.
  template <class T, class From>
  TensorView<T> copy(const Tensor<From>& tensor, std::int64_t padding = 0) {
    const std::int64_t dim = tensor.rank() == 0 ? 1 : tensor.extent(-1);
    const std::int64_t rows = dim == 0 ? 0 : tensor.num_elements() / dim;
    const std::int64_t count = rows == 0 ? 0 : (rows - 1) * (dim + padding) + dim;
    T* data = allocate<T>(count);
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
      data[i / dim * (dim + padding) + i % dim] =
          static_cast<T>(static_cast<float>(tensor.data()[i]));
    }
    Strides strides = contiguous_strides(tensor.shape());
    for (int d = 0; d + 1 < tensor.rank(); ++d) {
      auto& stride = strides[static_cast<std::size_t>(d)];
      if (dim != 0) stride = stride / dim * (dim + padding);
    }
    return {data, tensor.shape(), strides};
  }

 private:
  template <class T>
  T* allocate(std::int64_t count) {
    memory_.push_back(
        std::make_unique<GuardedMemory>(static_cast<std::size_t>(count) * sizeof(T), edge_));
    return static_cast<T*>(memory_.back()->data());
  }

  Edge edge_;
  std::vector<std::unique_ptr<GuardedMemory>> memory_;
};

std::string to_text(const Sizes& s) {
  std::string text;
  for (const std::int64_t size :
       {s.num_heads, s.num_kv_heads, s.q_len, s.kv_len, s.head_dim, s.value_dim}) {
    text += std::to_string(size) + " ";
  }
  return text;
}

// Every tensor that is read besides query, key and value.
struct Extras {
  Tensor<float> bias;
  Tensor<float> sinks;
  Tensor<float> added;
  Tensor<bool> allowed;
  Tensor<bool> blocked;

  explicit Extras(const Sizes& s)
      : bias(normal<float>({s.num_heads, s.q_len, s.kv_len}, 5)),
        sinks(normal<float>({s.num_heads}, 6)),
        added(normal<float>({s.q_len, s.kv_len}, 7)),
        allowed(Shape{s.kv_len}),
        blocked(Shape{s.q_len, 1}) {
    for (std::int64_t k = 0; k < s.kv_len; ++k) allowed(k) = k % 5 != 1;
    for (std::int64_t q = 0; q < s.q_len; ++q) blocked(q, std::int64_t{0}) = q % 7 == 3;
  }
};

std::vector<AttentionOptions> every_way(const Extras& extras, Guarded& guarded) {
  std::vector<AttentionOptions> ways(4);
  ways[1].mask = causal_bottom_right();
  ways[2].sinks = guarded.copy<float>(extras.sinks);
  ways[2].bias = guarded.copy<float>(extras.bias);
  ways[3].mask = Mask::allow(guarded.copy<bool>(extras.allowed)) &
                 Mask::block(guarded.copy<bool>(extras.blocked)) &
                 Mask::additive(guarded.copy<float>(extras.added));
  ways[3].dropout = {.probability = 0.2F, .seed = 1};
  return ways;
}

// Runs the fused path on guarded inputs of type T and guarded outputs whose rows have `padding`
// elements between them, and expects the bits of ordinary memory.
template <class T>
void expect_within(const kernels::KernelTable& table, const Sizes& sizes, std::int64_t padding) {
  const Inputs in(sizes);
  const Extras extras(sizes);
  for (const Edge edge : {Edge::kFirst, Edge::kLast}) {
    Guarded guarded(edge);
    const TensorView<const T> query = guarded.copy<T>(in.query, padding);
    const TensorView<const T> key = guarded.copy<T>(in.key, padding);
    const TensorView<const T> value = guarded.copy<T>(in.value, padding);
    for (const AttentionOptions& options : every_way(extras, guarded)) {
      FaultReport::during(std::string(table.name) + ", " + to_text(sizes) +
                          (edge == Edge::kLast ? "at the end" : "at the start"));
      Tensor<T> expected_out({1, sizes.num_heads, sizes.q_len, sizes.value_dim});
      Tensor<float> expected_lse({1, sizes.num_heads, sizes.q_len});
      run_into<T>(table, {to_tensor(query), to_tensor(key), to_tensor(value)}, options,
                  {expected_out, expected_lse});
      const auto out = guarded.copy<T>(Tensor<T>(expected_out.shape()), padding);
      const auto lse = guarded.copy<float>(Tensor<float>(expected_lse.shape()));
      run_into<T>(table, {query, key, value}, options, {out, lse});
      EXPECT_TRUE(same_bits(to_tensor(out), expected_out)) << to_text(sizes);
      EXPECT_TRUE(same_bits(to_tensor(lse), expected_lse)) << to_text(sizes);
    }
  }
}

template <class T>
void expect_within_for_many_sizes(const kernels::KernelTable& table) {
  // The thread that touches a protected page reports it.
  const ThreadLimit one_thread(1);
  const FaultReport report;
  for (const std::int64_t q_len : {1, 2, 3, 5, 12, 13, 25, 48, 49}) {
    for (const std::int64_t kv_len : {1, 3, 8, 128, 129}) {
      expect_within<T>(table, {.q_len = q_len, .kv_len = kv_len, .head_dim = 5, .value_dim = 3}, 0);
    }
  }
  for (const std::int64_t dim : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 65, 256}) {
    for (const std::int64_t q_len : {1, 16, 50}) {
      expect_within<T>(table,
                       {.num_heads = 4,
                        .num_kv_heads = 2,
                        .q_len = q_len,
                        .kv_len = 11,
                        .head_dim = dim,
                        .value_dim = dim + q_len % 2},
                       dim % 3);
    }
  }
  // Rows with so large a stride that they are copied first for many queries.
  for (const std::int64_t q_len : {2, 193}) {
    expect_within<T>(table, {.q_len = q_len, .kv_len = 131, .head_dim = 5, .value_dim = 3}, 513);
  }
}

TEST_P(GuardPages, Float32) { expect_within_for_many_sizes<float>(table()); }
TEST_P(GuardPages, Float16) { expect_within_for_many_sizes<Float16>(table()); }
TEST_P(GuardPages, BFloat16) { expect_within_for_many_sizes<BFloat16>(table()); }

}  // namespace
}  // namespace heed
