// Compiled as a user would: optimised, and with contraction allowed. See tests/CMakeLists.txt.
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
#include "heed/attention/score_mod.h"
#include "support/kernel_tables.h"
#include "support/panels.h"
#include "support/tensors.h"

namespace heed { namespace {

using detail::BasicScoreTile;
using testing_support::for_each_real;
using testing_support::kInfinityOf;
using testing_support::normal;
using testing_support::same_bits;

// A tile of normal scores of rows with different heads and positions.
template <class Real>
class Rows {
 public:
  Rows(const kernels::BasicKernelTable<Real>& table, std::int32_t vectors,
       std::int32_t first_row = 0)
      : width_(vectors * table.lanes),
        heads_(static_cast<std::size_t>(width_)),
        q_idx_(heads_.size()),
        scores_({kernels::kTileKeys, width_}),
        derivatives_({kernels::kTileKeys, width_}),
        target_(table.tile_target) {
    for (std::size_t r = 0; r < heads_.size(); ++r) {
      const auto row = static_cast<std::int32_t>(r) + first_row;
      heads_[r] = row % 3;
      q_idx_[r] = 200 + row / 3;
      for (std::int64_t j = 0; j < kernels::kTileKeys; ++j) {
        scores_.data()[j * width_ + static_cast<std::int64_t>(r)] =
            static_cast<Real>((row * 131 + j * 17) % 101 - 50) / 7;
      }
    }
    std::fill_n(derivatives_.data(), derivatives_.num_elements(), Real{1});
  }

  BasicScoreTile<Real> tile(std::int32_t begin, std::int32_t end) {
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
  BasicScoreTile<Real> tile_with_derivatives(std::int32_t begin, std::int32_t end) {
    BasicScoreTile<Real> result = tile(begin, end);
    result.derivatives = derivatives_.data();
    return result;
  }
  Real derivative(std::int64_t key, std::int64_t row) const {
    return derivatives_.data()[key * width_ + row];
  }
  Real score(std::int64_t key, std::int64_t row) const {
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
  Tensor<Real> scores_;
  Tensor<Real> derivatives_;
  detail::TileTarget target_;
};

// Functions as users write them: arithmetic on indices, branches, functions, tables.
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
         return score * heed::exp(decltype(score)(-0.02F * static_cast<float>(std::abs(q - k))));
       }},
      {"table by pointer",
       [table = slopes.data()](auto score, int, int h, int, int) { return score + table[h]; }},
      {"table by value",
       [table = slopes](auto score, int, int h, int, int) {
         return score + table[static_cast<std::size_t>(h)];
       }},
      {"hides",
       [](auto score, int, int, int q, int k) {
         return heed::select(k > q, decltype(score)(-kInfinityOf<float>), score);
       }},
  };
}

class TileLoop : public testing::TestWithParam<const kernels::KernelTable*> {
 protected:
  static const kernels::KernelTable& table() { return *GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Targets, TileLoop,
                         testing::ValuesIn(testing_support::kernels_of_numbers()),
                         [](const auto& test) { return std::string(test.param->name); });

// The tile uses fused multiply-adds where available, the single score does not: two roundings of
// numbers of at most about 100.
template <class Real>
void expect_near(Real found, Real expected) {
  if (std::isinf(expected)) {
    ASSERT_EQ(found, expected);
  } else {
    ASSERT_NEAR(found, expected, 170 * std::numeric_limits<Real>::epsilon());
  }
}

TEST_P(TileLoop, GivesEveryScoreItsPosition) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    for (const auto& [name, mod] : score_mods()) {
      for (const std::int32_t vectors : {1, 2, 3}) {
        SCOPED_TRACE(name);
        Rows<Real> rows(kernels::kernels_in<Real>(table()), vectors);
        const Rows<Real> original = rows;
        mod.apply_to(rows.tile(3, 100));
        for (std::int64_t j = 0; j < kernels::kTileKeys; ++j) {
          for (std::int64_t r = 0; r < rows.width(); ++r) {
            const Real before = original.score(j, r);
            const bool is_asked = j >= 3 && j < 100;
            expect_near(rows.score(j, r), is_asked ? mod(before, original.position(j, r)) : before);
          }
        }
      }
    }
  });
}

TEST_P(TileLoop, DifferentiatesEveryScore) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    for (const auto& [name, mod] : score_mods()) {
      SCOPED_TRACE(name);
      Rows<Real> rows(kernels::kernels_in<Real>(table()), 2);
      const Rows<Real> original = rows;
      mod.apply_to(rows.tile_with_derivatives(3, 100));
      for (std::int64_t j = 0; j < kernels::kTileKeys; ++j) {
        for (std::int64_t r = 0; r < rows.width(); ++r) {
          Dual<Real> expected(original.score(j, r), 1);
          if (j >= 3 && j < 100) expected = mod(expected, original.position(j, r));
          expect_near(rows.score(j, r), expected.value);
          expect_near(rows.derivative(j, r), expected.derivative);
        }
      }
    }
  });
}

TEST_P(TileLoop, GivesTheSameBitsInEveryLane) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels::kernels_in<Real>(table());
    for (const auto& [name, mod] : score_mods()) {
      Rows<Real> here(kernels, 3);
      mod.apply_to(here.tile(0, kernels::kTileKeys));
      for (const std::int32_t shift : {1, 5, kernels.lanes}) {
        Rows<Real> there(kernels, 3, shift);
        mod.apply_to(there.tile(7, 111));
        for (std::int64_t j = 7; j < 111; ++j) {
          for (std::int64_t r = 0; r + shift < here.width(); ++r) {
            ASSERT_EQ(here.score(j, r + shift), there.score(j, r)) << name << " " << j << " " << r;
          }
        }
      }
    }
  });
}

TEST_P(TileLoop, HidesWhatAMaskFunctionHides) {
  const auto visible = [](int b, int h, int q, int k) { return (b + h + 3 * q - k) % 5 != 0; };
  const detail::MaskFunctionOf function(visible);
  Rows<float> rows(table(), 2);
  const Rows<float> original = rows;
  function.hide(rows.tile(1, 127));
  for (std::int64_t j = 0; j < kernels::kTileKeys; ++j) {
    for (std::int64_t r = 0; r < rows.width(); ++r) {
      const bool is_hidden = j >= 1 && j < 127 && !function.visible(original.position(j, r));
      ASSERT_EQ(rows.score(j, r), is_hidden ? -kInfinityOf<float> : original.score(j, r))
          << j << " " << r;
    }
  }
}

// A score function of a binding to another language, which supports tiles of floats only.
class DoublesScores final : public detail::ScoreFunction {
 public:
  using ScoreFunction::apply_to;
  float apply(float score, const ScorePosition& at) const override { return any(score, at); }
  double apply(double score, const ScorePosition& at) const override { return any(score, at); }
  Dual<float> apply(Dual<float> score, const ScorePosition& at) const override {
    return any(score, at);
  }
  Dual<double> apply(Dual<double> score, const ScorePosition& at) const override {
    return any(score, at);
  }
  void apply_to(const detail::ScoreTile&) const override {}

 private:
  template <class Score>
  static Score any(Score score, const ScorePosition& at) {
    return 2 * score + at.kv_idx;
  }
};

TEST_P(TileLoop, AsksAboutDoublesOneByOneWhereNothingElseIsThere) {
  Rows<double> rows(*table().in_double, 1);
  const Rows<double> original = rows;
  DoublesScores().apply_to(rows.tile(1, 9));
  DoublesScores().apply_to(rows.tile_with_derivatives(9, 20));
  for (std::int64_t j = 0; j < kernels::kTileKeys; ++j) {
    for (std::int64_t r = 0; r < rows.width(); ++r) {
      const double before = original.score(j, r);
      const bool is_asked = j >= 1 && j < 20;
      ASSERT_EQ(rows.score(j, r), is_asked ? 2 * before + static_cast<double>(128 + j) : before);
      ASSERT_EQ(rows.derivative(j, r), j >= 9 && j < 20 ? 2 : 1);
    }
  }
}

// Positions that do not exist would be out of bounds of a user's table.
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
