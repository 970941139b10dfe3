// Compiled as a user would: optimised, and with contraction allowed. See tests/CMakeLists.txt.
#include "heed/detail/tile_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/kernels/kernels.h"
#include "heed/attention.h"
#include "support/tensors.h"

namespace heed {
namespace {

using detail::ScoreTile;
using testing_support::normal;
using testing_support::same_bits;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A tile of normal scores of rows that stand at different heads and positions.
class Rows {
 public:
  Rows(const kernels::KernelTable& table, std::int32_t vectors, std::int32_t first_row = 0)
      : width_(vectors * table.lanes),
        heads_(static_cast<std::size_t>(width_)),
        q_idx_(heads_.size()),
        scores_({kernels::kTileKeys, width_}),
        target_(table.tile_target) {
    for (std::size_t r = 0; r < heads_.size(); ++r) {
      const auto row = static_cast<std::int32_t>(r) + first_row;
      heads_[r] = row % 3;
      q_idx_[r] = 200 + row / 3;
      for (std::int64_t j = 0; j < kernels::kTileKeys; ++j) {
        scores_.data()[j * width_ + static_cast<std::int64_t>(r)] =
            static_cast<float>((row * 131 + j * 17) % 101 - 50) / 7;
      }
    }
  }

  ScoreTile tile(std::int32_t begin, std::int32_t end) {
    return {.scores = scores_.data(),
            .width = width_,
            .num_rows = width_,
            .first_key = 128,
            .begin = begin,
            .end = end,
            .batch = 2,
            .heads = heads_.data(),
            .q_idx = q_idx_.data(),
            .target = target_};
  }
  float score(std::int64_t key, std::int64_t row) const {
    return scores_.data()[key * width_ + row];
  }
  ScorePosition position(std::int64_t key, std::int64_t row) const {
    const auto r = static_cast<std::size_t>(row);
    return {2, heads_[r], q_idx_[r], static_cast<std::int32_t>(128 + key)};
  }
  std::int64_t width() const { return width_; }

 private:
  std::int32_t width_;
  std::vector<std::int32_t> heads_;
  std::vector<std::int32_t> q_idx_;
  Tensor<float> scores_;
  detail::TileTarget target_;
};

// What users write: arithmetic on indices, branches, functions, tables.
std::vector<std::pair<std::string, ScoreMod>> score_mods() {
  static const std::vector<float> slopes{0.5F, 0.25F, 0.125F};
  const float factor = 0.013F;
  return {
      {"identity", [](auto score, int, int, int, int) { return score; }},
      {"relative",
       [factor](auto score, int, int h, int q, int k) {
         return score - factor * static_cast<float>(h + 1) * static_cast<float>(q - k);
       }},
      {"branch",
       [](auto score, int b, int, int q, int k) {
         return q - k < 30 ? score : score * 0.5F - 0.01F * static_cast<float>(q - k + b);
       }},
      {"select", [](auto score, int, int, int q,
                    int k) { return heed::select((q + k) % 3 == 0, score, score * score - 1.0F); }},
      {"tanh", [](auto score, int, int, int, int) { return 3.0F * heed::tanh(score / 3.0F); }},
      {"exp",
       [](auto score, int, int, int q, int k) {
         return score * heed::exp(-0.02F * static_cast<float>(std::abs(q - k)));
       }},
      {"table by pointer",
       [table = slopes.data()](auto score, int, int h, int, int) { return score + table[h]; }},
      {"table by value",
       [table = slopes](auto score, int, int h, int, int) {
         return score + table[static_cast<std::size_t>(h)];
       }},
      {"hides", [](auto score, int, int, int q,
                   int k) { return heed::select(k > q, decltype(score)(-kInfinity), score); }},
  };
}

class TileLoop : public testing::TestWithParam<const kernels::KernelTable*> {
 protected:
  const kernels::KernelTable& table() const { return *GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Targets, TileLoop, testing::ValuesIn(kernels::supported_kernels()),
                         [](const auto& test) { return std::string(test.param->name); });

// The tile is computed with fused multiply-adds where the processor has them, the single score
// without: two roundings of numbers of at most about 100.
TEST_P(TileLoop, GivesEveryScoreItsPosition) {
  for (const auto& [name, mod] : score_mods()) {
    for (const std::int32_t vectors : {1, 2, 3}) {
      Rows rows(table(), vectors);
      const Rows original = rows;
      mod.apply_to(rows.tile(3, 100));
      for (std::int64_t j = 0; j < kernels::kTileKeys; ++j) {
        for (std::int64_t r = 0; r < rows.width(); ++r) {
          const float before = original.score(j, r);
          const float expected = j >= 3 && j < 100 ? mod(before, original.position(j, r)) : before;
          if (std::isinf(expected)) {
            ASSERT_EQ(rows.score(j, r), expected) << name << " " << j << " " << r;
          } else {
            ASSERT_NEAR(rows.score(j, r), expected, 2e-5) << name << " " << j << " " << r;
          }
        }
      }
    }
  }
}

TEST_P(TileLoop, GivesTheSameBitsInEveryLane) {
  for (const auto& [name, mod] : score_mods()) {
    Rows here(table(), 3);
    mod.apply_to(here.tile(0, kernels::kTileKeys));
    for (const std::int32_t shift : {1, 5, table().lanes}) {
      Rows there(table(), 3, shift);
      mod.apply_to(there.tile(7, 111));
      for (std::int64_t j = 7; j < 111; ++j) {
        for (std::int64_t r = 0; r + shift < here.width(); ++r) {
          ASSERT_EQ(here.score(j, r + shift), there.score(j, r)) << name << " " << j << " " << r;
        }
      }
    }
  }
}

TEST_P(TileLoop, HidesWhatAMaskFunctionHides) {
  const auto visible = [](int b, int h, int q, int k) { return (b + h + 3 * q - k) % 5 != 0; };
  const detail::MaskFunctionOf function(visible);
  Rows rows(table(), 2);
  const Rows original = rows;
  function.hide(rows.tile(1, 127));
  for (std::int64_t j = 0; j < kernels::kTileKeys; ++j) {
    for (std::int64_t r = 0; r < rows.width(); ++r) {
      const bool is_hidden = j >= 1 && j < 127 && !function.visible(original.position(j, r));
      ASSERT_EQ(rows.score(j, r), is_hidden ? -kInfinity : original.score(j, r)) << j << " " << r;
    }
  }
}

// Positions that are not there would be out of the bounds of a user's table.
TEST(ScoreModTile, AsksOnlyAboutCellsThatExist) {
  const auto x = normal<float>({1, 2, 5, 8}, 1);
  std::vector<char> asked(25, 0);
  AttentionOptions options;
  options.query_offset = 1000;
  options.score_mod = [&asked](auto score, int b, int h, int q, int k) {
    EXPECT_TRUE(b == 0 && h >= 0 && h < 2 && q >= 1000 && q < 1005 && k >= 0 && k < 5);
    const int cell = (q - 1000) * 5 + k;
    asked[static_cast<std::size_t>(cell)] = 1;
    return score;
  };
  attention(x, x, x, options);
  EXPECT_EQ(std::count(asked.begin(), asked.end(), 1), 25);
}

TEST(ScoreModTile, SameBitsInPrefillAndDecode) {
  const auto x = normal<float>({1, 3, 150, 24}, 1);
  for (const auto& [name, mod] : score_mods()) {
    AttentionOptions options{.mask = causal(0), .score_mod = mod};
    const auto whole = attention(x, x, x, options);
    for (std::int64_t q = 0; q < 150; q += 7) {
      options.query_offset = q;
      const auto keys = x.view().slice(2, 0, q + 1);
      const auto one = attention(x.view().slice(2, q, q + 1), keys, keys, options);
      ASSERT_TRUE(same_bits(one, to_tensor(whole.view().slice(2, q, q + 1)))) << name << " " << q;
    }
  }
}

}  // namespace
}  // namespace heed
