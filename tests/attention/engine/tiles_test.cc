// Products of bfloat16 in AMX tiles, or in their emulation, compared with plain loops that round
// the same numbers in the same places.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "attention/engine/half_rules.h"
#include "attention/kernels/panel/backward.h"
#include "heed/attention/kv_cache.h"
#include "support/drawn_attention.h"
#include "support/guarded_memory.h"
#include "support/half_gradients.h"

namespace heed { namespace {

using testing_support::attention_case;
using testing_support::AttentionCase;
using testing_support::DrawnAttention;
using testing_support::exact_of;
using testing_support::HalfInputs;
using testing_support::HalfViews;
using testing_support::Judgement;
using testing_support::normal;
using testing_support::Path;
using testing_support::request_of;
using testing_support::same_bits;
using testing_support::same_result;
using testing_support::Sizes;

// Returns the table that multiplies in AMX tiles, or null.
const kernels::KernelTable* table_of_tiles() {
  for (const auto* table : kernels::supported_kernels()) {
    if (table->in_pairs != nullptr && table->in_pairs->multiplies_tiles()) return table;
  }
  return nullptr;
}

AttentionOutput<float> in_tiles(const HalfViews& in, const AttentionOptions& options,
                                const Path& path = {}) {
  return testing_support::attend(*table_of_tiles(), in, options, path);
}

std::string inaccuracy_in_tiles(const HalfInputs& in, const AttentionOptions& options) {
  return testing_support::inaccuracy(*table_of_tiles(), in, options);
}

std::string gradient_inaccuracy_in_tiles(const HalfInputs& in, const AttentionOptions& options) {
  return testing_support::gradient_inaccuracy(*table_of_tiles(), in, options);
}

class Tiles : public testing::Test {
 protected:
  void SetUp() override {
    if (table_of_tiles() == nullptr) GTEST_SKIP() << "this processor has no tiles";
  }
};

// Tiles that follow two others become pairs at once.
TEST_F(Tiles, AwkwardLengths) {
  for (const std::int64_t q_len : {1, 2, 15, 16, 17, 47, 48, 49, 129}) {
    for (const std::int64_t kv_len :
         {1, 2, 3, 15, 16, 17, 31, 32, 33, 127, 128, 129, 145, 257, 289, 320, 352}) {
      const HalfInputs in({.q_len = q_len, .kv_len = kv_len, .head_dim = 32, .value_dim = 32});
      for (const Mask& mask : {Mask(), causal_bottom_right(), causal_top_left()}) {
        EXPECT_EQ(inaccuracy_in_tiles(in, {.mask = mask}), "")
            << q_len << "x" << kv_len << " " << mask.description();
      }
    }
  }
}

TEST_F(Tiles, HeadSizes) {
  for (const std::int64_t head_dim : {32, 64, 96, 128, 256}) {
    for (const std::int64_t value_dim : {32, 96, 256}) {
      const HalfInputs in({.num_heads = 2,
                           .num_kv_heads = 2,
                           .q_len = 50,
                           .kv_len = 131,
                           .head_dim = head_dim,
                           .value_dim = value_dim});
      EXPECT_EQ(inaccuracy_in_tiles(in, {}), "") << head_dim << "/" << value_dim;
    }
  }
}

// Shapes that do not fit AMX tiles take another path, but lengths do not decide: a token has the
// same bits whatever is computed with it.
TEST_F(Tiles, TakeWhatFits) {
  const auto are_taken = [](const Sizes& sizes, Precision precision = Precision::kFast) {
    const HalfInputs in(sizes);
    const auto request = request_of(in, {.precision = precision});
    const auto are_taken_on = [&](engine::Pass pass) {
      return engine::make_schedule(*table_of_tiles(), request, pass, 1).stages_pairs;
    };
    EXPECT_EQ(are_taken_on(engine::Pass::kBackward), are_taken_on(engine::Pass::kForward));
    return are_taken_on(engine::Pass::kForward);
  };
  for (const std::int64_t q_len : {0, 1, 5, 300}) {
    EXPECT_TRUE(are_taken({.q_len = q_len, .kv_len = 300, .head_dim = 64, .value_dim = 32}));
    EXPECT_FALSE(are_taken({.q_len = q_len, .kv_len = 300, .head_dim = 64, .value_dim = 48}));
    EXPECT_FALSE(are_taken({.q_len = q_len, .kv_len = 300, .head_dim = 80, .value_dim = 64}));
    EXPECT_FALSE(are_taken({.q_len = q_len, .kv_len = 300, .head_dim = 288, .value_dim = 64}));
  }
  EXPECT_FALSE(
      are_taken({.q_len = 9, .kv_len = 9, .head_dim = 64, .value_dim = 64}, Precision::kExact));
}

// Panels compute several tiles of keys in one go, except with user functions and in the backward
// pass. The panels of a block take about as much memory on several threads as on one.
TEST_F(Tiles, AreTakenTogether) {
  const auto schedule_of = [](const Sizes& sizes, const AttentionOptions& options, int threads = 1,
                              engine::Pass pass = engine::Pass::kForward) {
    const HalfInputs in(sizes);
    const auto request = request_of(in, options);
    return engine::make_schedule(*table_of_tiles(), request, pass, threads);
  };
  Sizes sizes{.num_heads = 1, .q_len = 1600, .kv_len = 300, .head_dim = 64, .value_dim = 64};
  EXPECT_EQ(schedule_of(sizes, {}).tiles_together, 3);
  EXPECT_EQ(schedule_of(sizes, {}, 1, engine::Pass::kBackward).tiles_together, 1);
  sizes.kv_len = 1100;
  EXPECT_EQ(schedule_of(sizes, {}).tiles_together, 8);
  const auto half = [](auto score, int, int, int, int) { return score * 0.5F; };
  EXPECT_EQ(schedule_of(sizes, {.score_mod = half}).tiles_together, 1);
  EXPECT_EQ(schedule_of(sizes, {}).panels_per_block, 32);
  sizes.num_heads = sizes.num_kv_heads = 4;
  sizes.head_dim = sizes.value_dim = 256;
  EXPECT_EQ(schedule_of(sizes, {}, 1).panels_per_block, 17);
  EXPECT_EQ(schedule_of(sizes, {}, 2).panels_per_block, 8);
}

TEST_F(Tiles, NoKeysAndNoQueries) {
  EXPECT_EQ(inaccuracy_in_tiles(
                HalfInputs(Sizes{.q_len = 3, .kv_len = 0, .head_dim = 32, .value_dim = 32}), {}),
            "");
  EXPECT_TRUE(
      in_tiles(HalfInputs(Sizes{.q_len = 0, .head_dim = 32, .value_dim = 32}), {}).out.empty());
}

// Weights are rounded by up to 2⁻⁹ of themselves, which determines the error of the result.
TEST_F(Tiles, LongSequences) {
  for (const std::int64_t dim : {64, 128}) {
    const HalfInputs in({.q_len = 100, .kv_len = 5000, .head_dim = dim, .value_dim = dim});
    const auto found = in_tiles(in, {});
    const auto plain = reference::attention(in.query, in.key, in.value);
    EXPECT_EQ(Judgement{}("out", found.out, plain.out, exact_of(in, {}).out), "");
  }
}

// Panels compute the visible tiles among 1024 keys in one go.
TEST_F(Tiles, LongSequencesUnderMasks) {
  const HalfInputs in({.q_len = 100, .kv_len = 2300, .head_dim = 32, .value_dim = 64});
  const Alignment end = Alignment::bottom_right();
  for (const Mask& mask :
       {causal_bottom_right(), sliding_window(700, 0, end), sliding_window(1200, 5, end),
        columns(7), key_lengths({1100}), dilated(300, 4, end)}) {
    EXPECT_EQ(inaccuracy_in_tiles(in, {.mask = mask}), "") << mask.description();
  }
}

// A drawn problem whose dims are whole AMX tiles.
AttentionCase drawn_tiles(bool modifies) {
  AttentionCase drawn = *attention_case(modifies);
  // Learned vectors are added to values in float.
  std::erase_if(drawn.options,
                [](const auto* option) { return option->name == "relative_vectors"; });
  drawn.sizes.head_dim = 32 * (1 + drawn.sizes.head_dim % 3);
  drawn.sizes.value_dim = 32 * (1 + drawn.sizes.value_dim % 3);
  return drawn;
}

RC_GTEST_FIXTURE_PROP(Tiles, DrawnProblems, (bool modifies)) {
  if (table_of_tiles() == nullptr) return;  // SetUp() skips no property
  const DrawnAttention drawn(drawn_tiles(modifies));
  const HalfInputs in(drawn.views());
  RC_ASSERT(inaccuracy_in_tiles(in, drawn.options()) == "");
}

RC_GTEST_FIXTURE_PROP(Tiles, ThreadsAndLanesChangeNoBit, (bool modifies)) {
  if (table_of_tiles() == nullptr) return;  // SetUp() skips no property
  const DrawnAttention drawn(drawn_tiles(modifies));
  const HalfInputs in(drawn.views());
  const auto expected = in_tiles(in, drawn.options(), {.few_rows = false});
  RC_ASSERT(same_result(in_tiles(in, drawn.options()), expected));
  RC_ASSERT(
      same_result(in_tiles(in, drawn.options(), {.few_rows = false, .threads = 3}), expected));
}

TEST_F(Tiles, ARowAloneHasTheSameBits) {
  testing_support::expect_a_row_alone_has_the_same_bits(*table_of_tiles(), 64, 32);
}

TEST_F(Tiles, LayoutsChangeNoBit) {
  testing_support::expect_layouts_change_no_bit(*table_of_tiles(), 64);
}

TEST_F(Tiles, HiddenNumbersTouchNothing) {
  testing_support::expect_hidden_numbers_touch_nothing(*table_of_tiles(), 32, 64);
}
// A bfloat16 cache, which stores keys as columns, gives the bits of tensors: in prefill, in chunks
// and token by token.
TEST_F(Tiles, CachesHaveTheSameBits) {
  if (attention_target() != "AMX_BF16") GTEST_SKIP();
  const HalfInputs in({.num_heads = 4,
                       .num_kv_heads = 2,
                       .q_len = 300,
                       .kv_len = 300,
                       .head_dim = 64,
                       .value_dim = 32});
  const AttentionOptions options{.mask = causal()};
  const auto whole = attention(in.query, in.key, in.value, options);
  for (const std::int64_t page_size : {16, 128}) {
    KvSequence sequence({.num_kv_heads = 2,
                         .head_dim = 64,
                         .value_dim = 32,
                         .key_storage = KvStorage::kBFloat16,
                         .value_storage = KvStorage::kBFloat16,
                         .page_size = page_size});
    std::int64_t at = 0;
    for (const std::int64_t count : {1, 2, 29, 1, 100, 1, 128, 38}) {
      const auto some = [&](const Tensor<BFloat16>& x) {
        return BFloat16View(x).slice(2, at, at + count);
      };
      sequence.append(some(in.key), some(in.value));
      EXPECT_TRUE(same_bits(attend(some(in.query), sequence, options), to_tensor(some(whole))))
          << page_size << " " << at;
      at += count;
    }
  }
}

TEST_F(Tiles, ThePlanSaysSo) {
  if (attention_target() != "AMX_BF16") GTEST_SKIP();
  AttentionShapes shapes{.q_len = 64, .kv_len = 64, .head_dim = 64, .value_dim = 64};
  shapes.dtype = DataType::kBFloat16;
  EXPECT_NE(plan(shapes).to_string().find("products    of bfloat16 in tiles"), std::string::npos);
  shapes.head_dim = 72;
  EXPECT_NE(plan(shapes).to_string().find("products    of float32"), std::string::npos);
}

TEST_F(Tiles, GradientsOfAwkwardSizes) {
  for (const std::int64_t q_len : {1, 16, 17, 31, 47, 51, 97}) {
    for (const std::int64_t kv_len : {1, 2, 15, 16, 17, 33, 127, 128, 131, 320}) {
      const HalfInputs in({.num_heads = 2,
                           .num_kv_heads = 1,
                           .q_len = q_len,
                           .kv_len = kv_len,
                           .head_dim = 32,
                           .value_dim = 64});
      for (const Mask& mask :
           {Mask(), causal_bottom_right(), sliding_window(20, 3, Alignment::top_left())}) {
        EXPECT_EQ(gradient_inaccuracy_in_tiles(in, {.mask = mask}), "")
            << q_len << "x" << kv_len << " " << mask.description();
      }
    }
  }
}

TEST_F(Tiles, GradientsOfHeadSizes) {
  for (const std::int64_t head_dim : {32, 64, 96, 128, 256}) {
    for (const std::int64_t value_dim : {32, 96, 256}) {
      const HalfInputs in(
          {.q_len = 50, .kv_len = 131, .head_dim = head_dim, .value_dim = value_dim});
      EXPECT_EQ(gradient_inaccuracy_in_tiles(in, {}), "") << head_dim << "/" << value_dim;
    }
  }
}

TEST_F(Tiles, GradientsOfLongSequences) {
  testing_support::expect_accurate_gradients_of_long_sequences(*table_of_tiles());
}

RC_GTEST_FIXTURE_PROP(Tiles, GradientsOfDrawnProblems, (bool modifies)) {
  if (table_of_tiles() == nullptr) return;  // SetUp() skips no property
  AttentionCase drawn_options = drawn_tiles(modifies);
  drawn_options.magnitude = 1;
  const DrawnAttention drawn(drawn_options);
  const HalfInputs in(drawn.views());
  RC_ASSERT(gradient_inaccuracy_in_tiles(in, drawn.options()) == "");
}

TEST_F(Tiles, GradientsHaveTheSameBitsOnThreads) {
  testing_support::expect_gradients_have_the_same_bits_on_threads(*table_of_tiles(), 32);
}

TEST_F(Tiles, GradientsOfAnOutOfFloatsAreTheSame) {
  testing_support::expect_gradients_of_an_out_of_floats_are_the_same(*table_of_tiles(), 64);
}

TEST_F(Tiles, GradientsOfRowsThatAreNotFinite) {
  testing_support::expect_gradients_of_rows_that_are_not_finite(*table_of_tiles(), 32);
}

TEST_F(Tiles, GradientsOfHiddenNumbers) {
  testing_support::expect_gradients_of_hidden_numbers_are_nothing(*table_of_tiles(), 32);
}

// A row with one key of weight 1 has no gradient, because grad_out · out and grad_out · value are
// the same sum.
TEST_F(Tiles, AWeightOfOneHasNoGradient) {
  const HalfInputs in({.q_len = 1, .kv_len = 1, .head_dim = 64, .value_dim = 96});
  const auto found =
      testing_support::differentiate(*table_of_tiles(), in, testing_support::grad_out_for(in), {});
  for (std::int64_t d = 0; d < 64; ++d) {
    EXPECT_EQ(found.query(0, 0, 0, d), 0);
    EXPECT_EQ(found.key(0, 0, 0, d), 0);
  }
}

// The sums of keys that fill no block end at a protected page.
TEST_F(Tiles, SumsOfKeysEndWhereTheyEnd) {
  constexpr std::int32_t kKeys = 20;
  constexpr std::int32_t kDim = 32;
  const auto& table = *table_of_tiles()->in_pairs;
  const std::vector<std::int32_t> begin(16, 0);
  const std::vector<std::int32_t> end(16, kKeys);
  kernels::Panel panel{.vectors = 1, .head_dim = kDim, .value_dim = kDim};
  panel.begin = begin.data();
  panel.end = end.data();
  panel.any_end = panel.all_end = panel.vector_end[0] = kKeys;
  alignas(64) float numbers[32 * 16];
  alignas(64) float rows[16 * kDim];
  std::fill(std::begin(numbers), std::end(numbers), 2.0F);
  std::fill(std::begin(rows), std::end(rows), 3.0F);
  const kernels::RowVectors vectors{rows, 16, 16, kDim / 16};
  table.backward->pair_rows(vectors, rows);
  const testing_support::GuardedMemory memory(sizeof(float) * kKeys * kDim,
                                              testing_support::Edge::kLast);
  auto* const sums = static_cast<float*>(memory.data());
  std::fill_n(sums, kKeys * kDim, 1.0F);
  table.backward->add_to_keys({.num_keys = kKeys}, panel, numbers, vectors, false, {sums, kDim});
  for (std::int32_t i = 0; i < kKeys * kDim; ++i) EXPECT_EQ(sums[i], 1 + 16 * 6) << i;
}

// 2ˣ in the tile path, by the sum of a row that sees one key with score 0. In units in the last
// place.
TEST_F(Tiles, Exp2IsAccurate) {
  constexpr std::int32_t kDim = 32;
  constexpr std::int32_t kLanes = 16;
  const auto& table = *table_of_tiles()->in_pairs;
  const std::vector<std::int32_t> begin(kLanes, 0);
  const std::vector<std::int32_t> end(kLanes, 1);
  alignas(64) const float zeros[kDim * kLanes] = {};
  alignas(64) float minus_m[kLanes];
  alignas(64) float threshold[kLanes];
  alignas(64) float sum[kLanes];
  alignas(64) float out[kDim * kLanes] = {};
  alignas(64) float weights[kernels::kTileKeysTogether * kLanes];
  std::fill(std::begin(threshold), std::end(threshold), 30.0F);
  kernels::Tile tile;
  tile.key = tile.pairs = zeros;
  tile.key_stride = tile.pair_stride = kDim / 2;
  tile.num_keys = 1;
  kernels::Panel panel{.vectors = 1, .head_dim = kDim, .value_dim = kDim, .query = zeros};
  panel.begin = begin.data();
  panel.end = end.data();
  panel.any_end = panel.all_end = panel.vector_end[0] = 1;
  const auto exp2 = [&](float x) {
    std::fill(std::begin(minus_m), std::end(minus_m), x);
    std::fill(std::begin(sum), std::end(sum), 0.0F);
    kernels::PanelState state{minus_m, threshold, sum, out};
    table.attend(tile, panel, {}, state, weights);
    return sum[kLanes - 1];
  };
  double worst = 0;
  const auto measure = [&](float x) {
    const double exact = std::exp2(static_cast<double>(x));
    const auto rounded = static_cast<float>(exact);
    const float unit = std::nextafter(rounded, std::numeric_limits<float>::infinity()) - rounded;
    worst = std::max(worst, std::abs(static_cast<double>(exp2(x)) - exact) / unit);
  };
  for (float x = -100; x <= 30; x += 0x1.357p-10F) measure(x);
  for (float x = 1; x > 0x1p-70F; x *= 0.61F) {
    measure(x);
    measure(-x);
  }
  EXPECT_LE(worst, 2.7);
  EXPECT_GE(worst, 1);
  EXPECT_EQ(exp2(0), 1);
  EXPECT_EQ(exp2(-100), 0x1p-100F);
  EXPECT_EQ(exp2(std::nextafter(-100.0F, -200.0F)), 0);
  EXPECT_EQ(exp2(-std::numeric_limits<float>::infinity()), 0);
  EXPECT_TRUE(std::isnan(exp2(std::numeric_limits<float>::quiet_NaN())));
}

// Scores that are too large for the running softmax.
TEST_F(Tiles, RowsOfLargeScores) {
  const HalfInputs in({.q_len = 20, .kv_len = 200, .head_dim = 32, .value_dim = 32}, 1e7F);
  const auto found = in_tiles(in, {});
  const AttentionOptions exact{.precision = Precision::kExact};
  const auto plain = reference::attention(in.query, in.key, in.value, exact);
  EXPECT_EQ((Judgement{.always_allowed = 1e-3}("out", found.out, plain.out, exact_of(in, {}).out)),
            "");
}

}  // namespace
}  // namespace heed
