// Hidden keys never affect a query, and non-finite numbers affect only the queries that see them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/fused.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::Inputs;
using testing_support::normal;
using testing_support::run;
using testing_support::same_bits;
using testing_support::TargetTest;

using testing_support::kInfinity;
using testing_support::kNaN;
constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kHiddenQueries = 70;
constexpr std::int64_t kHiddenKeys = 300;
const ScoreShape kShape{kBatch, kHeads, kHiddenQueries, kHiddenKeys};

class Hidden : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(Hidden);

Inputs inputs() {
  return Inputs({.batch = kBatch,
                 .num_heads = kHeads,
                 .num_kv_heads = 1,
                 .q_len = kHiddenQueries,
                 .kv_len = kHiddenKeys,
                 .head_dim = 12,
                 .value_dim = 9});
}

std::vector<Mask> every_kind_of_mask() {
  static const Tensor<bool> flags = [] {
    Tensor<bool> tensor({kHeads, kHiddenQueries, kHiddenKeys});
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data()[i] = i * 7919 % 5 < 2;
    return tensor;
  }();
  static const Tensor<float> added = [] {
    Tensor<float> tensor = normal<float>({kBatch, 1, 1, kHiddenKeys}, 7);
    for (std::int64_t i = 0; i < tensor.num_elements(); i += 3) tensor.data()[i] = -kInfinity;
    return tensor;
  }();
  static const Tensor<std::int64_t> tokens = [] {
    Tensor<std::int64_t> tensor({kBatch, kHiddenKeys});
    for (std::int64_t i = 0; i < kBatch * kHiddenKeys; ++i) tensor.data()[i] = i % 5;
    return tensor;
  }();
  std::vector<RowRange> ranges;
  for (std::int64_t q = 0; q < kHiddenQueries; ++q)
    ranges.push_back({q * 2, q % 7 == 0 ? 0 : q * 3 + 9});
  const Mask window = sliding_window(40, 3, Alignment::top_left());
  const Mask odd = Mask::where([](int b, int h, int q, int k) { return (b + h + q + k) % 2 == 1; });
  return {causal_top_left(),
          causal_bottom_right(),
          causal(17),
          window,
          prefix(50, Alignment::top_left()),
          key_lengths({131, 0}),
          key_padding(tokens, 0),
          documents({0, 13, 64, 64, kHiddenKeys}),
          Mask::rows(ranges),
          Mask::allow(flags),
          Mask::block(flags),
          Mask::additive(added),
          odd,
          window & odd,
          causal_bottom_right() & Mask::additive(added) & odd};
}

// Both paths through a kernel, and dropped weights.
std::vector<AttentionOptions> every_way(const Mask& mask) {
  std::vector<AttentionOptions> ways(3);
  ways[1].softcap = 3;
  ways[2].dropout = {.probability = 0.4F, .seed = 3};
  for (AttentionOptions& options : ways) options.mask = mask;
  return ways;
}

bool is_finite(const float* row, std::int64_t length) {
  return std::all_of(row, row + length, [](float x) { return std::isfinite(x); });
}

// Puts non-finite numbers into the values of one key, and into the key itself if `keys_too`.
Inputs poisoned(Inputs in, std::int64_t key, bool keys_too) {
  for (std::int64_t b = 0; b < in.key.extent(0); ++b) {
    for (std::int64_t h = 0; h < in.key.extent(1); ++h) {
      for (std::int64_t d = 0; d < in.value.extent(3); ++d) {
        in.value(b, h, key, d) = d % 2 == 0 ? kNaN : -kInfinity;
      }
      for (std::int64_t d = 0; keys_too && d < in.key.extent(3); ++d) {
        in.key(b, h, key, d) = d % 2 == 0 ? kInfinity : kNaN;
      }
    }
  }
  return in;
}

// Expects non-finite rows where the key is seen and the bits of `clean` elsewhere.
void expect_only_seen(const AttentionOutput<float>& found, const AttentionOutput<float>& clean,
                      const Tensor<bool>& visible, std::int64_t key, const std::string& what) {
  const std::int64_t dim = found.out.extent(3);
  int leaks = 0;
  int losses = 0;
  for (std::int64_t row = 0; row < found.lse.num_elements(); ++row) {
    const float* out = found.out.data() + row * dim;
    if (visible.data()[row * visible.extent(3) + key]) {
      losses += is_finite(out, dim) ? 1 : 0;
      continue;
    }
    const bool is_same = std::equal(out, out + dim, clean.out.data() + row * dim) &&
                         found.lse.data()[row] == clean.lse.data()[row];
    leaks += is_same ? 0 : 1;
  }
  EXPECT_EQ(leaks, 0) << "rows changed by key " << key << ", which they do not see: " << what;
  EXPECT_EQ(losses, 0) << "rows see key " << key << " but are finite: " << what;
}

TEST_P(Hidden, EveryMaskKeepsOneKeyFromWhoDoesNotSeeIt) {
  const Inputs in = inputs();
  for (const Mask& mask : every_kind_of_mask()) {
    const auto visible = materialize_allow(mask, kShape);
    for (const AttentionOptions& options : every_way(mask)) {
      const auto clean = run(table(), in, options);
      for (const std::int64_t key : {0, 62, 128, 299}) {
        for (const bool keys_too : {false, true}) {
          const auto found = run(table(), poisoned(in, key, keys_too), options);
          expect_only_seen(found, clean, visible, key, mask.description());
        }
      }
    }
  }
}

TEST_P(Hidden, WhatNobodySeesChangesNoBit) {
  const Inputs in = inputs();
  for (const Mask& mask : every_kind_of_mask()) {
    const auto visible = materialize_allow(mask, kShape);
    for (const AttentionOptions& options : every_way(mask)) {
      Inputs all = in;
      for (std::int64_t k = 0; k < kHiddenKeys; ++k) {
        bool is_seen = false;
        for (std::int64_t row = 0; row < kBatch * kHeads * kHiddenQueries; ++row) {
          is_seen = is_seen || visible.data()[row * kHiddenKeys + k];
        }
        if (!is_seen) all = poisoned(std::move(all), k, true);
      }
      const auto clean = run(table(), in, options);
      const auto found = run(table(), all, options);
      EXPECT_TRUE(same_bits(found.out, clean.out)) << mask.description();
      EXPECT_TRUE(same_bits(found.lse, clean.lse)) << mask.description();
    }
  }
}

// A score of −infinity hides the value, whatever its origin.
TEST_P(Hidden, ScoresOfMinusInfinityHideValues) {
  const Inputs in = inputs();
  Tensor<float> bias({kHiddenQueries, kHiddenKeys});
  Tensor<bool> visible({kBatch, kHeads, kHiddenQueries, kHiddenKeys});
  const auto sees = [](std::int64_t q, std::int64_t k) { return (q + k) % 3 != 0; };
  for (std::int64_t q = 0; q < kHiddenQueries; ++q) {
    for (std::int64_t k = 0; k < kHiddenKeys; ++k) bias(q, k) = sees(q, k) ? 0.1F : -kInfinity;
  }
  for (std::int64_t i = 0; i < visible.num_elements(); ++i) {
    visible.data()[i] = sees(i / kHiddenKeys % kHiddenQueries, i % kHiddenKeys);
  }
  std::vector<AttentionOptions> ways(2);
  ways[0].bias = bias;
  ways[1].score_mod = [&sees](auto score, int, int, int q, int k) {
    return sees(q, k) ? score : decltype(score)(-kInfinity);
  };
  for (const AttentionOptions& options : ways) {
    const auto clean = run(table(), in, options);
    for (const std::int64_t key : {0, 128, 299}) {
      expect_only_seen(run(table(), poisoned(in, key, false), options), clean, visible, key,
                       "-inf");
    }
  }
}

TEST_P(Hidden, WindowsOverChunks) {
  const Inputs in({.q_len = 60, .kv_len = 2500, .head_dim = 4, .value_dim = 4});
  const Mask mask = sliding_window(1300, 0, Alignment::bottom_right());
  const auto visible = materialize_allow(mask, {.q_len = 60, .kv_len = 2500});
  for (const AttentionOptions& options : every_way(mask)) {
    const auto clean = run(table(), in, options);
    for (const std::int64_t key : {0, 1023, 1024, 1150, 1200, 2047, 2048, 2440, 2470, 2499}) {
      expect_only_seen(run(table(), poisoned(in, key, true), options), clean, visible, key,
                       mask.description());
    }
  }
}

TEST_P(Hidden, AQueryThatIsNotFiniteIsAlone) {
  const Inputs before({.q_len = 100, .kv_len = 100, .head_dim = 16});
  Inputs in = before;
  in.query(0, 0, 10, 0) = kNaN;
  in.query(0, 0, 73, 0) = kInfinity;
  in.query(0, 0, 73, 15) = -kNaN;
  for (const AttentionOptions& options : every_way(causal())) {
    const auto clean = run(table(), before, options);
    const auto found = run(table(), in, options);
    for (std::int64_t q = 0; q < 100; ++q) {
      const float* out = &found.out(0, 0, q, 0);
      if (q == 10 || q == 73) {
        EXPECT_FALSE(is_finite(out, 16)) << q;
      } else {
        EXPECT_TRUE(std::equal(out, out + 16, &clean.out(0, 0, q, 0))) << q;
      }
    }
  }
}

}  // namespace
}  // namespace heed
