// Scores and lengths at which a fused softmax can go wrong, compared with the reference in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/fused.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::expect_accurate;
using testing_support::Inputs;
using testing_support::normal;
using testing_support::run;
using testing_support::TargetTest;

class Accuracy : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(Accuracy);

// The two paths through a kernel: without and with modified scores.
std::vector<AttentionOptions> both_ways() {
  AttentionOptions modified;
  modified.score_mod = [](auto score, int, int, int, int k) { return score + (k % 3 - 1) * 0.1F; };
  return {{}, modified};
}

// The score of one key for query q is score(q); all other scores are 0.
template <class Score>
Inputs with_one_loud_key(std::int64_t q_len, std::int64_t kv_len, std::int64_t loud, Score score) {
  Inputs in({.q_len = q_len, .kv_len = kv_len, .head_dim = 1, .value_dim = 5});
  for (std::int64_t q = 0; q < q_len; ++q) in.query(0, 0, q, 0) = score(q);
  for (float& element : in.key.elements()) element = 0;
  in.key(0, 0, loud, 0) = 1;
  return in;
}

TEST_P(Accuracy, OneKeyLateInTheSequenceDominates) {
  for (const AttentionOptions& options : both_ways()) {
    for (const std::int64_t loud : {0, 127, 128, 255, 256, 300, 383, 1023, 1024, 1400, 1500}) {
      for (const float size : {1.0F, 20.0F, 31.0F, 88.0F, 90.0F, 140.0F, 1e3F, 1e10F, 1e30F}) {
        // Within a panel some rows rise, some fall, some stay.
        const Inputs in = with_one_loud_key(
            7, 1501, loud, [size](std::int64_t q) { return size * static_cast<float>(q % 3 - 1); });
        expect_accurate(table(), in, options, std::to_string(size) + " at " + std::to_string(loud));
      }
    }
  }
}

// Scores rise with the key in some rows of a panel and fall in others, by up to about 2 · step.
TEST_P(Accuracy, EveryKeyIsLouderThanTheOneBefore) {
  constexpr float kDirection[] = {0.61F, -0.37F, 0.83F};
  for (const AttentionOptions& options : both_ways()) {
    for (const float step : {0.01F, 0.3F, 1.1F, 29.0F, 200.0F}) {
      Inputs in({.q_len = 50, .kv_len = 700, .head_dim = 3, .value_dim = 3});
      for (std::int64_t k = 0; k < 700; ++k) {
        for (int d = 0; d < 3; ++d)
          in.key(0, 0, k, d) = step * static_cast<float>(k) * kDirection[d];
      }
      expect_accurate(table(), in, options, std::to_string(step));
    }
  }
}

TEST_P(Accuracy, LargeAndGrowingScores) {
  for (const AttentionOptions& options : both_ways()) {
    for (const float magnitude : {10.0F, 25.0F, 80.0F}) {
      Inputs in({.q_len = 60, .kv_len = 1100, .head_dim = 32}, magnitude);
      const std::string what = std::to_string(magnitude);
      expect_accurate(table(), in, options, what);
      for (std::int64_t k = 0; k < 1100; ++k) {
        for (std::int64_t d = 0; d < 32; ++d) in.key(0, 0, k, d) *= static_cast<float>(k) / 550;
      }
      expect_accurate(table(), in, options, what + ", growing");
      AttentionOptions masked = options;
      masked.mask = causal_bottom_right();
      expect_accurate(table(), in, masked, what + ", growing, causal");
    }
  }
}

TEST_P(Accuracy, ManyKeys) {
  for (const AttentionOptions& options : both_ways()) {
    for (const std::int64_t kv_len : {1023, 1024, 1025, 3001, 16384}) {
      for (const float magnitude : {1.0F, 5.0F}) {
        const Inputs in({.q_len = 10, .kv_len = kv_len, .head_dim = 16}, magnitude);
        const std::string what = std::to_string(kv_len) + " keys, " + std::to_string(magnitude);
        expect_accurate(table(), in, options, what);
        AttentionOptions masked = options;
        masked.mask = sliding_window(kv_len / 2, 0, Alignment::bottom_right());
        expect_accurate(table(), in, masked, what + ", window");
      }
    }
  }
}

// Equal scores: every weight is 1, so sums of weights and values are long chains.
TEST_P(Accuracy, TheMeanOfManyValues) {
  for (const AttentionOptions& options : both_ways()) {
    const Inputs in({.q_len = 2, .kv_len = 16384, .head_dim = 4}, 0);
    expect_accurate(table(), in, options, "mean");
  }
}

// A score of infinity makes its row non-finite; a score of −infinity hides its key.
TEST_P(Accuracy, InfiniteScoresAreNotLost) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const AttentionOptions& options : both_ways()) {
    for (const std::int64_t loud : {0, 300, 1400}) {
      for (const std::int64_t q_len : {1, 48, 50}) {
        const auto sign = [](std::int64_t q) { return q % 3 == 0 ? 1.0F : -1.0F; };
        Inputs in = with_one_loud_key(q_len, 1501, loud, sign);
        in.key(0, 0, loud, 0) = kInfinity;
        const auto result = run(table(), in, options);
        for (std::int64_t q = 0; q < q_len; ++q) {
          EXPECT_EQ(std::isfinite(result.out(0, 0, q, 0)), sign(q) < 0) << q << " at " << loud;
          EXPECT_EQ(std::isfinite(result.lse(0, 0, q)), sign(q) < 0) << q << " at " << loud;
        }
      }
    }
  }
}

// One NaN among finite scores, of either sign: processors make negative ones, programs positive
// ones.
TEST_P(Accuracy, NaNScoresAreNotLost) {
  for (const float sign : {1.0F, -1.0F}) {
    for (const AttentionOptions& options : both_ways()) {
      for (const std::int64_t loud : {0, 300, 1400}) {
        const auto zero = [](std::int64_t) { return 0.0F; };
        Inputs in = with_one_loud_key(50, 1501, loud, zero);
        in.key(0, 0, loud, 0) = std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
        const auto result = run(table(), in, options);
        for (std::int64_t q = 0; q < 50; ++q) {
          EXPECT_FALSE(std::isfinite(result.out(0, 0, q, 0))) << q << " at " << loud;
          EXPECT_FALSE(std::isfinite(result.lse(0, 0, q))) << q << " at " << loud;
        }
      }
    }
  }
}

}  // namespace
}  // namespace heed
