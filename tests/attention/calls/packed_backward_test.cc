#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "heed/attention/packed.h"
#include "heed/attention/position.h"
#include "heed/attention/reference.h"
#include "heed/core/parallel.h"
#include "support/gradients.h"
#include "support/options.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::alone_and_in_pairs;
using testing_support::DrawnOptions;
using testing_support::max_difference;
using testing_support::Message;
using testing_support::normal;
using testing_support::Option;
using testing_support::options_where;
using testing_support::same_bits;

using Boundaries = std::vector<std::int64_t>;

struct Dims {
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 16;
  std::int64_t value_dim = 7;
};

// Adds `part` to `sum`, which is empty at first.
void add(Tensor<float>& sum, const Tensor<float>& part) {
  if (part.empty()) return;
  if (sum.empty()) sum = Tensor<float>(part.shape());
  std::transform(sum.elements().begin(), sum.elements().end(), part.elements().begin(), sum.data(),
                 [](float a, float b) { return a + b; });
}

// Packed tensors of four heads; each sequence is also computed alone.
class PackedProblem {
 public:
  PackedProblem(Boundaries queries, Boundaries keys, Dims dims = {})
      : q_at(std::move(queries)),
        k_at(std::move(keys)),
        query(normal<float>({q_at.back(), 4, dims.head_dim}, 1)),
        key(normal<float>({k_at.back(), dims.kv_heads, dims.head_dim}, 2)),
        value(normal<float>({k_at.back(), dims.kv_heads, dims.value_dim}, 3)),
        grad_out(normal<float>({q_at.back(), 4, dims.value_dim}, 4)) {}

  std::size_t count() const { return q_at.size() - 1; }
  AttentionOutput<float> forward(const AttentionOptions& options) const {
    return attention_packed_with_lse(query, key, value, {q_at, k_at}, options);
  }
  AttentionGradients<float> backward(const AttentionOutput<float>& forward,
                                     const AttentionOptions& options, int threads = 1) const {
    const ThreadLimit limit(threads);
    return attention_packed_backward(grad_out, query, key, value, {q_at, k_at}, forward, options);
  }
  AttentionGradients<float> backward(const AttentionOptions& options) const {
    return backward(forward(options), options);
  }

  FloatView queries(const Tensor<float>& packed, std::size_t i) const {
    return rows(packed, q_at[i], q_at[i + 1]);
  }
  FloatView keys(const Tensor<float>& packed, std::size_t i) const {
    return rows(packed, k_at[i], k_at[i + 1]);
  }
  // Returns the gradients of sequence i as a batch of one.
  AttentionGradients<float> alone(std::size_t i, const AttentionOptions& options) const {
    const FloatView q = queries(query, i), k = keys(key, i), v = keys(value, i);
    return attention_backward(queries(grad_out, i), q, k, v, attention_with_lse(q, k, v, options),
                              options);
  }
  AttentionGradients<float> by_reference(std::size_t i, const AttentionOptions& options) const {
    return reference::attention_backward(queries(grad_out, i), queries(query, i), keys(key, i),
                                         keys(value, i), options);
  }

  const Boundaries q_at;
  const Boundaries k_at;
  const Tensor<float> query;
  const Tensor<float> key;
  const Tensor<float> value;
  const Tensor<float> grad_out;

 private:
  static FloatView rows(const Tensor<float>& packed, std::int64_t begin, std::int64_t end) {
    return packed.view().slice(0, begin, end).permute({1, 0, 2}).to_rank(4);
  }
};

// Returns the gradients on one thread and expects the same bits on several threads.
AttentionGradients<float> gradients_of(const PackedProblem& packed, const AttentionOptions& options,
                                       const std::string& what) {
  const auto forward = packed.forward(options);
  auto found = packed.backward(forward, options);
  for (const int threads : {2, 7}) {
    EXPECT_TRUE(same_bits(packed.backward(forward, options, threads), found))
        << what << threads << " threads";
  }
  return found;
}

using OptionsOf = std::function<AttentionOptions(std::size_t)>;

// `options_of` returns the options of sequence i alone.
void expect_single_calls(const PackedProblem& packed, const AttentionOptions& options,
                         const OptionsOf& options_of, const std::string& what) {
  const auto found = gradients_of(packed, options, what);
  AttentionGradients<float> shared;
  for (const auto& term : kLearnable<float>) shared.*term.gradient = Tensor<float>();
  for (std::size_t i = 0; i < packed.count(); ++i) {
    const auto one = packed.alone(i, options_of(i));
    EXPECT_TRUE(same_bits(to_tensor(packed.queries(found.query, i)), one.query)) << what << i;
    EXPECT_TRUE(same_bits(to_tensor(packed.keys(found.key, i)), one.key)) << what << i;
    EXPECT_TRUE(same_bits(to_tensor(packed.keys(found.value, i)), one.value)) << what << i;
    for (const auto& term : kLearnable<float>) add(shared.*term.gradient, one.*term.gradient);
  }
  for (const auto& term : kLearnable<float>) {
    EXPECT_TRUE(same_bits(found.*term.gradient, shared.*term.gradient)) << what << term.name;
  }
}

void expect_single_calls(const PackedProblem& packed, const AttentionOptions& options,
                         const std::string& what) {
  expect_single_calls(
      packed, options, [&](std::size_t) { return options; }, what);
}

// Lengths of 0, 1 and primes; one sequence whose queries are divided, one without keys, one without
// queries.
const Boundaries kQueryBounds{0, 1, 1, 132, 389, 392, 392, 409};
const Boundaries kKeyBounds{0, 3, 10, 77, 208, 208, 208, 215};
const Boundaries kFewQueries{0, 1, 1, 38, 57, 60};
const Boundaries kFewKeys{0, 3, 10, 41, 84, 84};

TEST(PackedBackward, IsEverySequenceForItself) {
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    for (const std::int64_t dim : {7, 16}) {
      const PackedProblem packed(kQueryBounds, kKeyBounds,
                                 {.kv_heads = kv_heads, .head_dim = dim, .value_dim = 23 - dim});
      const std::string what = std::to_string(kv_heads) + ", " + std::to_string(dim) + ": ";
      expect_single_calls(packed, {}, what);
      expect_single_calls(packed, {.mask = causal_bottom_right()}, "causal, " + what);
    }
  }
}

TEST(PackedBackward, EveryMask) {
  const PackedProblem packed(kQueryBounds, kKeyBounds);
  expect_single_calls(packed, {.mask = causal_top_left()}, "top left ");
  expect_single_calls(packed, {.mask = sliding_window(20, 3, Alignment::bottom_right())},
                      "window ");
  expect_single_calls(
      packed, {.mask = Mask::where([](int, int h, int q, int k) { return (h + q + k) % 3 != 0; })},
      "irregular ");
}

TEST(PackedBackward, EveryOption) {
  const PackedProblem packed(kQueryBounds, kKeyBounds);
  const auto slopes = alibi_slopes<float>(4);
  const auto sinks = normal<float>({4}, 5);
  const auto bias = normal<float>({4, 1, 1}, 6);
  expect_single_calls(packed, {.alibi_slopes = slopes}, "slopes ");
  expect_single_calls(packed, {.sinks = sinks}, "sinks ");
  expect_single_calls(packed, {.bias = bias}, "bias ");
  expect_single_calls(packed, {.softcap = 1.5F}, "softcap ");
  expect_single_calls(packed, {.scale = -0.4F, .query_offset = 5}, "scale ");
  const PackedProblem few(kFewQueries, kFewKeys, {.kv_heads = 2});
  const auto mod = [](auto score, int, int h, int q, int k) {
    return heed::tanh(score) * static_cast<float>(1 + h) + 0.1F * static_cast<float>((q - k) % 3);
  };
  expect_single_calls(few, {.score_mod = mod}, "score_mod ");
  expect_single_calls(
      few, {.score_mod = mod, .alibi_slopes = slopes, .bias = bias, .sinks = sinks, .softcap = 3},
      "all ");
}

// Sequences of equal length may share one bias or have one each.
TEST(PackedBackward, ABiasOfAnyShape) {
  const PackedProblem packed({0, 53, 106, 159}, {0, 131, 262, 393});
  for (const Shape& shape : {Shape{131}, Shape{53, 1}, Shape{53, 131}, Shape{4, 53, 131},
                             Shape{1, 4, 1, 131}, Shape{3, 1, 53, 131}, Shape{3, 4, 53, 1}}) {
    const auto bias = normal<float>(shape, 6);
    if (shape.rank() < 4 || shape[0] == 1) {
      expect_single_calls(packed, {.bias = bias}, to_string(shape));
      continue;
    }
    const auto found = packed.backward({.bias = bias});
    for (std::int64_t i = 0; i < 3; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto one = packed.alone(at, {.bias = bias.view().slice(0, i, i + 1)});
      EXPECT_TRUE(same_bits(to_tensor(packed.queries(found.query, at)), one.query)) << i;
      EXPECT_TRUE(same_bits(to_tensor(packed.keys(found.key, at)), one.key)) << i;
      EXPECT_TRUE(same_bits(to_tensor(found.bias.view().slice(0, i, i + 1)), one.bias)) << i;
    }
  }
}

TEST(PackedBackward, SequencesAreEntriesOfABatch) {
  const PackedProblem packed(kFewQueries, kFewKeys, {.kv_heads = 2});
  const auto options_of = [](int added) {
    AttentionOptions options;
    options.mask = Mask::where([added](int b, int, int, int k) { return k % 5 <= b + added; });
    options.score_mod = [added](auto score, int b, int, int, int k) {
      return score * static_cast<float>(1 + b + added) + 0.1F * static_cast<float>(k);
    };
    return options;
  };
  expect_single_calls(
      packed, options_of(0), [&](std::size_t i) { return options_of(static_cast<int>(i)); },
      "entry ");
}

// Masks, modified scores and dropout may depend on the number of the sequence.
TEST(PackedBackward, EveryOptionHasTheBitsOfABatch) {
  const PackedProblem packed(kFewQueries, kFewKeys, {.kv_heads = 2});
  const auto count = static_cast<std::int64_t>(packed.count());
  const testing_support::Sizes sizes{.batch = count, .num_heads = 4, .value_dim = 7};
  std::uint64_t seed = 0;
  for (const auto& chosen : alone_and_in_pairs(options_where(
           [](const Option& option) { return option.is_option() && option.in_packed; }))) {
    const DrawnOptions<float> drawn(sizes, chosen, ++seed, true);
    const AttentionOptions& options = *drawn;
    SCOPED_TRACE(to_string(chosen));
    const auto found = gradients_of(packed, options, "");
    for (const std::size_t i : {std::size_t{2}, std::size_t{3}}) {
      // Returns `count` copies of the sequence.
      const auto copies = [&](FloatView view) {
        return view.broadcast_to({count, view.extent(1), view.extent(2), view.extent(3)});
      };
      const FloatView q = copies(packed.queries(packed.query, i));
      const FloatView k = copies(packed.keys(packed.key, i));
      const FloatView v = copies(packed.keys(packed.value, i));
      const auto batch = attention_backward(copies(packed.queries(packed.grad_out, i)), q, k, v,
                                            attention_with_lse(q, k, v, options), options);
      const auto entry = [i](const Tensor<float>& gradient) {
        const auto at = static_cast<std::int64_t>(i);
        return to_tensor(gradient.view().slice(0, at, at + 1));
      };
      EXPECT_TRUE(same_bits(to_tensor(packed.queries(found.query, i)), entry(batch.query))) << i;
      EXPECT_TRUE(same_bits(to_tensor(packed.keys(found.key, i)), entry(batch.key))) << i;
      EXPECT_TRUE(same_bits(to_tensor(packed.keys(found.value, i)), entry(batch.value))) << i;
    }
  }
}

TEST(PackedBackward, IsCloseToTheReference) {
  const PackedProblem packed(kQueryBounds, kKeyBounds);
  const auto sinks = normal<float>({4}, 5);
  const AttentionOptions options{.mask = causal_bottom_right(), .sinks = sinks, .softcap = 4};
  const auto found = packed.backward(options);
  Tensor<float> expected_sinks;
  for (std::size_t i = 0; i < packed.count(); ++i) {
    const auto expected = packed.by_reference(i, options);
    EXPECT_LE(max_difference<float>(packed.queries(found.query, i), expected.query), 1e-5) << i;
    EXPECT_LE(max_difference<float>(packed.keys(found.key, i), expected.key), 3e-5) << i;
    EXPECT_LE(max_difference<float>(packed.keys(found.value, i), expected.value), 3e-5) << i;
    add(expected_sinks, expected.sinks);
  }
  EXPECT_LE(max_difference(found.sinks, expected_sinks), 1e-4);
}

// The reference computes rows longer than the kernels support.
TEST(PackedBackward, OfLongRows) {
  const PackedProblem packed({0, 1, 2}, {0, 2, 4}, {.head_dim = 65537, .value_dim = 2});
  const auto bias = normal<float>({2, 1, 1, 2}, 6);
  const auto shared = normal<float>({1, 2}, 6);
  const auto sinks = normal<float>({4}, 5);
  const auto slopes = alibi_slopes<float>(4);
  expect_single_calls(packed, {.alibi_slopes = slopes, .bias = shared, .sinks = sinks}, "long ");
  const auto found = packed.backward({.bias = bias});
  const auto second = packed.alone(1, {.bias = bias.view().slice(0, 1, 2)});
  EXPECT_TRUE(same_bits(to_tensor(found.bias.view().slice(0, 1, 2)), second.bias));
}

TEST(PackedBackward, NoSequences) {
  const PackedProblem none({0}, {0});
  const auto sinks = normal<float>({4}, 5);
  const auto found = none.backward({.sinks = sinks});
  EXPECT_EQ(found.query.shape(), (Shape{0, 4, 16}));
  EXPECT_TRUE(same_bits(found.sinks, Tensor<float>({4})));
}

struct RefusedCall {
  PackedProblem packed{{0, 2, 5}, {0, 3, 7}};
  Boundaries q_at = packed.q_at;
  Boundaries k_at = packed.k_at;
  AttentionOptions options;
  AttentionOutput<float> forward = packed.forward({});
  FloatView grad_out = packed.grad_out;
};

void expect_refused(const std::function<void(RefusedCall&)>& spoil, const Message& text) {
  RefusedCall call;
  spoil(call);
  EXPECT_THAT(
      [&] {
        attention_packed_backward(call.grad_out, call.packed.query, call.packed.key,
                                  call.packed.value, {call.q_at, call.k_at}, call.forward,
                                  call.options);
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("attention_packed_backward: "), text)));
}

TEST(PackedBackward, RefusesWhatDoesNotFit) {
  expect_refused(
      [](RefusedCall& call) {
        call.q_at = {0, 2, 6};
      },
      "the boundaries of query end at 6, but it has 5 rows");
  expect_refused([](RefusedCall& call) { call.q_at = {0, 5}; }, {"query", "1"});
  expect_refused([](RefusedCall& call) { call.grad_out = call.packed.query; },
                 {"grad_out", "[5, 4, 16]"});
  const Tensor<float> transposed({5, 7, 4});
  expect_refused(
      [&](RefusedCall& call) {
        call.grad_out = transposed.view().permute({0, 2, 1});
      },
      "grad_out");
  expect_refused(
      [](RefusedCall& call) {
        call.forward.out = Tensor<float>({5, 7});
      },
      {"forward.out", "[5, 7]"});
  expect_refused(
      [](RefusedCall& call) {
        call.forward.lse = Tensor<float>({5, 4});
      },
      {"forward.lse", "[5, 4]"});
  expect_refused([](RefusedCall& call) { call.options.softcap = -1; }, {"softcap", "-1"});
  expect_refused([](RefusedCall& call) { call.options.mask = causal(); }, {"q_len", "2"});
}

}  // namespace
}  // namespace heed
