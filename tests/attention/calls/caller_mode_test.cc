// Results do not depend on the floating-point mode of the caller: one line for each kind of call.
#include "support/caller_mode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "attention/bits/hash.h"
#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/attention/diagnostics.h"
#include "heed/attention/kv_cache.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/merge.h"
#include "heed/attention/packed.h"
#include "heed/attention/plan.h"
#include "heed/attention/position.h"
#include "heed/attention/reference.h"
#include "heed/attention/relative_position.h"
#include "heed/attention/rotary.h"
#include "heed/attention/select_blocks.h"
#include "heed/attention/statistics.h"
#include "heed/core/convert.h"
#include "support/tensors.h"

namespace heed::caller_mode { namespace {

using bits::Hash;
using testing_support::normal;

// Normal numbers, of which every seventh is subnormal.
template <class T>
Tensor<T> drawn(const Shape& shape, std::uint32_t seed) {
  Tensor<double> numbers = normal<double>(shape, seed);
  constexpr double kTiny = std::is_same_v<T, double> ? 0x1p-1030 : 0x1p-135;
  std::size_t i = 0;
  for (double& number : numbers.elements()) {
    if (i++ % 7 == 0) number *= kTiny;
  }
  return converted<T>(numbers.view());
}

// The tensors of a problem; made before any mode is set.
template <class T>
struct Tensors {
  Tensor<T> query = drawn<T>({1, 4, 33, 24}, 1);
  Tensor<T> key = drawn<T>({1, 2, 70, 24}, 2);
  Tensor<T> value = drawn<T>({1, 2, 70, 20}, 3);
  Tensor<T> grad_out = drawn<T>({1, 4, 33, 20}, 4);
};
const Tensors<float>& floats() {
  static const Tensors<float> tensors;
  return tensors;
}
const Tensors<double>& doubles() {
  static const Tensors<double> tensors;
  return tensors;
}
const Tensors<BFloat16>& halves() {
  static const Tensors<BFloat16> tensors;
  return tensors;
}

template <class Real>
BasicAttentionOptions<Real> options() {
  static const Tensor<Real> sinks(Shape{4}, {Real(0.1), Real(-0.7), Real(1.3), Real(0)});
  BasicAttentionOptions<Real> all;
  all.mask = causal(Alignment::bottom_right());
  all.softcap = Real(7.3);
  all.sinks = sinks.view();
  return all;
}

template <class... Tensors>
std::uint64_t hash_of(const Tensors&... tensors) {
  Hash hash;
  (hash.add(tensors), ...);
  return hash.value();
}

template <class T, class Real>
std::uint64_t hash_of_output(const AttentionOutput<T, Real>& output) {
  return hash_of(output.out, output.lse, output.lse_low);
}

template <class T>
std::uint64_t forward(const Tensors<T>& of) {
  return hash_of_output(
      attention_with_lse(of.query, of.key, of.value, options<detail::RealOf<Tensor<T>>>()));
}

template <class T>
std::uint64_t backward(const Tensors<T>& of) {
  using Real = detail::RealOf<Tensor<T>>;
  static const auto output = attention_with_lse(of.query, of.key, of.value, options<Real>());
  const auto gradients =
      attention_backward(of.grad_out, of.query, of.key, of.value, output, options<Real>());
  return hash_of(gradients.query, gradients.key, gradients.value, gradients.sinks);
}

TEST(CallerMode, ChangesNoForwardOrBackwardCall) {
  expect_no_influence_of_the_caller({
      {"float", [] { return forward(floats()); }},
      {"double", [] { return forward(doubles()); }},
      {"bfloat16", [] { return forward(halves()); }},
      {"backward of float", [] { return backward(floats()); }},
      {"backward of double", [] { return backward(doubles()); }},
      {"backward of bfloat16", [] { return backward(halves()); }},
      {"a plan",
       [] {
         const auto& of = floats();
         const AttentionShapes shapes{.batch = 1,
                                      .num_heads = 4,
                                      .num_kv_heads = 2,
                                      .q_len = 33,
                                      .kv_len = 70,
                                      .head_dim = 24,
                                      .value_dim = 20};
         return hash_of(plan(shapes, options<float>()).run(of.query, of.key, of.value));
       }},
      {"packed sequences",
       [] {
         static const auto query = drawn<float>({33, 4, 24}, 5);
         static const auto key = drawn<float>({33, 2, 24}, 6);
         static const std::vector<std::int64_t> bounds{0, 10, 33};
         const PackedSequences sequences{bounds, bounds};
         return hash_of_output(
             attention_packed_with_lse(query, key, key, sequences, options<float>()));
       }},
      {"merge",
       [] {
         const auto& of = floats();
         static const auto part = attention_with_lse(of.query, of.key, of.value);
         static const auto other = attention_with_lse(of.query, of.key, of.value, {.scale = 0.3F});
         return hash_of_output(merge_attention(part, other));
       }},
  });
}

TEST(CallerMode, ChangesNoMeasurement) {
  static const std::vector<AttentionRow> rows{{0, 1, 3}, {0, 3, 32}};
  expect_no_influence_of_the_caller({
      {"weights", [] { return hash_of(attention_weights(floats().query, floats().key, rows)); }},
      {"statistics",
       [] {
         const auto found = attention_statistics(floats().query, floats().key, options<float>());
         return hash_of(found.lse, found.entropy, found.max_weight, found.key_mass);
       }},
      {"statistics of double",
       [] {
         const auto found = attention_statistics(doubles().query, doubles().key);
         return hash_of(found.lse, found.entropy, found.max_weight, found.key_mass);
       }},
      {"diagnostics",
       [] {
         Hash hash;
         hash.add_number(attention_diagnostics(floats().query, floats().key).mean_similarity());
         return hash.value();
       }},
      {"the reference",
       [] {
         const auto& of = floats();
         const auto found = reference::attention(of.query, of.key, of.value, options<float>());
         return hash_of(found.out, found.lse);
       }},
      {"softmax of the reference", [] { return hash_of(reference::softmax(floats().query)); }},
  });
}

TEST(CallerMode, ChangesNoCache) {
  const auto with_storage = [](KvStorage storage) {
    return [storage] {
      static const auto keys = drawn<float>({2, 70, 32}, 7);
      static const auto queries = drawn<float>({1, 4, 1, 32}, 8);
      KvSequence sequence(KvConfig{
          .num_kv_heads = 2, .head_dim = 32, .key_storage = storage, .value_storage = storage});
      sequence.append(keys, keys);
      const auto output = attend_with_lse(queries, sequence, {.softcap = 7.3F});
      const KvTensors stored = sequence.dequantised();
      return hash_of(output.out, output.lse, stored.key, stored.value);
    };
  };
  std::vector<Entry> entries;
  for (const KvStorage storage : kKvStorages) {
    entries.push_back({"a cache of " + std::string(to_string(storage)), with_storage(storage)});
  }
  expect_no_influence_of_the_caller(entries);
}

TEST(CallerMode, ChangesNoRecurrence) {
  static const auto query = drawn<float>({1, 2, 40, 16}, 9);
  static const auto decay = [] {
    Tensor<float> logs = normal<float>({1, 2, 40, 16}, 10);
    for (float& log : logs.elements()) log = -std::abs(log);
    return logs;
  }();
  const LinearAttentionOptions gated{.decay = decay.view()};
  expect_no_influence_of_the_caller({
      {"linear attention",
       [=] {
         const auto found = linear_attention(query, query, query, gated);
         return hash_of(found.out, found.state);
       }},
      {"its gradients",
       [=] {
         const LinearAttentionLoss<float> loss{.grad_out = query.view()};
         const auto found = linear_attention_backward(loss, query, query, query, gated);
         return hash_of(found.query, found.key, found.value, found.decay);
       }},
      {"feature maps", [] { return hash_of(feature_map_attention(query, query, query)); }},
  });
}

TEST(CallerMode, ChangesNoPosition) {
  expect_no_influence_of_the_caller({
      {"sinusoidal_encoding", [] { return hash_of(sinusoidal_encoding<float>(50, 12)); }},
      {"alibi_slopes", [] { return hash_of(alibi_slopes<float>(12)); }},
      {"rotary_frequencies",
       [] {
         return hash_of(
             rotary_frequencies(24, 1e4, YarnScaling{.factor = 3.7, .original_max_len = 512})
                 .inv_freq);
       }},
      {"rotary_caches",
       [] {
         static const auto frequencies = rotary_frequencies(24, 1e4);
         const auto caches = rotary_caches<float>(40, frequencies);
         return hash_of(caches.cos, caches.sin);
       }},
      {"rotary_embedding",
       [] {
         static const auto caches = rotary_caches<float>(40, rotary_frequencies(24, 1e4));
         return hash_of(
             rotary_embedding(floats().query, caches.cos, caches.sin, RotaryPairing::kHalves));
       }},
      {"select_blocks",
       [] {
         const auto layout = select_blocks(floats().query, floats().key, {.block = 16, .top_k = 2});
         Hash hash;
         for (const std::int32_t column : layout.columns) hash.add_number(column);
         return hash.value();
       }},
  });
}

}  // namespace
}  // namespace heed::caller_mode
