// Products of bfloat16 in the tiles of AMX, or in what emulates them: held to what plain loops make
// of the same numbers, rounded at the same places.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attention/masks/sinks_and_window.h"
#include "heed/kv_cache.h"
#include "support/drawn_attention.h"
#include "support/half_calls.h"

namespace heed {
namespace {

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

// The table that multiplies in tiles, or null.
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

class Tiles : public testing::Test {
 protected:
  void SetUp() override {
    if (table_of_tiles() == nullptr) GTEST_SKIP() << "this processor has no tiles";
  }
};

TEST_F(Tiles, AwkwardLengths) {
  for (const std::int64_t q_len : {1, 2, 15, 16, 17, 47, 48, 49, 129}) {
    for (const std::int64_t kv_len : {1, 2, 3, 15, 16, 17, 31, 32, 33, 127, 128, 129, 145, 257}) {
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

// What is asked for beside shapes of tiles: lengths never tell, for a token has the same bits
// whatever is computed with it.
TEST_F(Tiles, TakeWhatFits) {
  const auto are_taken = [](const Sizes& sizes, Precision precision = Precision::kFast) {
    const HalfInputs in(sizes);
    const auto request = request_of(in, {.precision = precision});
    const auto schedule =
        engine::make_schedule(*table_of_tiles(), request, engine::Pass::kForward, 1);
    return schedule.stages_pairs;
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

TEST_F(Tiles, NoKeysAndNoQueries) {
  EXPECT_EQ(inaccuracy_in_tiles(
                HalfInputs(Sizes{.q_len = 3, .kv_len = 0, .head_dim = 32, .value_dim = 32}), {}),
            "");
  EXPECT_TRUE(
      in_tiles(HalfInputs(Sizes{.q_len = 0, .head_dim = 32, .value_dim = 32}), {}).out.empty());
}

// The error of a result is that of its weights: rounded, each by up to 2⁻⁹ of itself.
TEST_F(Tiles, LongSequences) {
  for (const std::int64_t dim : {64, 128}) {
    const HalfInputs in({.q_len = 100, .kv_len = 5000, .head_dim = dim, .value_dim = dim});
    const auto found = in_tiles(in, {});
    const auto plain = reference::attention(in.query, in.key, in.value);
    EXPECT_EQ(Judgement{}("out", found.out, plain.out, exact_of(in, {}).out), "");
  }
}

// A drawn problem, in whole tiles.
AttentionCase drawn_tiles(bool modifies) {
  AttentionCase drawn = *attention_case(modifies);
  drawn.relative = 0;  // learned vectors are added to values in float
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

// A row alone, which vectors compute, has the bits that it has among many, whatever a mask leaves
// of the keys.
TEST_F(Tiles, ARowAloneHasTheSameBits) {
  const std::int64_t length = 1300;
  const HalfInputs in({.num_heads = 2,
                       .num_kv_heads = 1,
                       .q_len = length,
                       .kv_len = length,
                       .head_dim = 64,
                       .value_dim = 32});
  const Tensor<float> bias = normal<float>({2, 1, length}, 4);
  const Alignment from_first = Alignment::top_left();
  std::vector<AttentionOptions> all;
  for (const Mask& mask :
       {Mask(), causal_top_left(), sliding_window(77, 5, from_first), strided(31, from_first),
        strided(2, from_first), dilated(5, 3, from_first), sinks_and_window(3, 41),
        causal_top_left() &
            Mask::where([](auto, auto, auto, auto k) { return k % 128 > 32 && k % 3 == 1; })}) {
    all.push_back({.mask = mask});
  }
  all.push_back({.bias = bias, .softcap = 5});
  for (const AttentionOptions& options : all) {
    SCOPED_TRACE(options.mask.description());
    const auto whole = in_tiles(in, options);
    for (const std::int64_t q : {0, 1, 640, 1151, 1299}) {
      const HalfViews row{HalfViews(in).query.slice(2, q, q + 1), in.key, in.value};
      AttentionOptions alone = options;
      alone.query_offset = q;
      for (const bool few_rows : {true, false}) {
        const auto found = in_tiles(row, alone, {.few_rows = few_rows});
        for (std::int64_t h = 0; h < 2; ++h) {
          EXPECT_EQ(found.lse(0, h, 0), whole.lse(0, h, q)) << q;
          for (std::int64_t d = 0; d < 32; ++d) {
            ASSERT_EQ(found.out(0, h, 0, d), whole.out(0, h, q, d)) << q << " " << d;
          }
        }
      }
    }
  }
}

// Rows at addresses that no pair begins at, of odd strides, side by side or far apart.
TEST_F(Tiles, LayoutsChangeNoBit) {
  constexpr std::int64_t kDim = 64;
  const HalfInputs in({.num_heads = 2,
                       .num_kv_heads = 2,
                       .q_len = 60,
                       .kv_len = 150,
                       .head_dim = kDim,
                       .value_dim = kDim});
  const auto expected = in_tiles(in, {});
  for (const std::int64_t padding : {1, 2, 3, 1200}) {
    const auto laid_out = [&](const Tensor<BFloat16>& x, Tensor<BFloat16>& memory) {
      memory = Tensor<BFloat16>({1, x.extent(2), 2, kDim + padding});
      const auto view = memory.view().permute({0, 2, 1, 3}).slice(3, 1, 1 + kDim);
      for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t i = 0; i < x.extent(2); ++i)
          for (std::int64_t d = 0; d < kDim; ++d) view(0, h, i, d) = x(0, h, i, d);
      return BFloat16View(view);
    };
    Tensor<BFloat16> query, key, value;
    const HalfViews views{laid_out(in.query, query), laid_out(in.key, key),
                          laid_out(in.value, value)};
    EXPECT_TRUE(same_result(in_tiles(views, {}), expected)) << padding;
    const HalfViews row{views.query.slice(2, 5, 6), views.key, views.value};
    EXPECT_TRUE(same_result(in_tiles(row, {}), in_tiles(row, {}, {.few_rows = false})));
  }
}

// What a row does not see may be anything.
TEST_F(Tiles, HiddenNumbersTouchNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const bool few_rows : {true, false}) {
    for (const std::int64_t last : {40, 41, 128}) {
      HalfInputs in({.q_len = 3, .kv_len = 200, .head_dim = 32, .value_dim = 64});
      const AttentionOptions options{.mask = sliding_window(9, 0, Alignment::top_left()),
                                     .query_offset = last - 2};
      const auto expected = in_tiles(in, options, {.few_rows = few_rows});
      for (std::int64_t k = 0; k < 200; ++k) {
        if (k >= last - 11 && k < last) continue;  // of the last one: it alone sees key `last`
        for (std::int64_t d = 0; d < 32; ++d) in.key(0, 0, k, d) = BFloat16(infinity);
        for (std::int64_t d = 0; d < 64; ++d) in.value(0, 0, k, d) = BFloat16(nan);
      }
      const auto found = in_tiles(in, options, {.few_rows = few_rows});
      for (std::int64_t d = 0; d < 64; ++d) {
        for (std::int64_t q = 0; q < 2; ++q) {
          EXPECT_EQ(found.out(0, 0, q, d), expected.out(0, 0, q, d)) << last << " " << q;
        }
        EXPECT_TRUE(std::isnan(found.out(0, 0, 2, d)));
      }
    }
  }
}

// A cache of bfloat16, whose keys lie as columns, has the bits of tensors: in prefill, in chunks
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
