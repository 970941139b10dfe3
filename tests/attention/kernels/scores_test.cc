// Operations on a tile of scores between the two products, in float and double.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "attention/kernels/kernels.h"
#include "support/fused.h"
#include "support/panels.h"

namespace heed { namespace {

using kernels::kernels_in;
using testing_support::for_each_real;
using testing_support::kInfinityOf;
using testing_support::normal;

// A tile of normal scores; the first and the last keys are not requested.
template <class Real>
class Scores {
 public:
  using Number = Real;

  Scores(const kernels::BasicKernelTable<Real>& table, std::int32_t vectors, std::int32_t num_keys)
      : width_(vectors * table.lanes),
        num_keys_(num_keys),
        original_(normal<Real>({num_keys, width_}, 1)),
        scores_(normal<Real>({num_keys, width_}, 1)) {
    for (std::int32_t r = 0; r < width_; ++r) q_idx_.push_back(37 * r % 50);
  }

  kernels::BasicScoreTile<Real> tile() {
    return {.scores = scores_.data(),
            .width = width_,
            .num_rows = width_,
            .first_key = kFirstKey,
            .begin = 1,
            .end = num_keys_ - 1,
            .batch = 0,
            .heads = nullptr,
            .q_idx = q_idx_.data(),
            .target = detail::TileTarget::kBaseline};
  }

  Real& operator()(std::int32_t j, std::int32_t r) { return scores_(j, r); }
  std::int32_t width() const { return width_; }
  std::int32_t num_keys() const { return num_keys_; }

  // Expects every requested score to be expected(before, j, r), and the others unchanged.
  template <class Expected>
  void expect(const Expected& expected) const {
    for (std::int32_t j = 0; j < num_keys_; ++j) {
      for (std::int32_t r = 0; r < width_; ++r) {
        const Real before = original_(j, r);
        const bool is_asked = j >= 1 && j < num_keys_ - 1;
        ASSERT_EQ(scores_(j, r), is_asked ? expected(before, j, r) : before) << j << " " << r;
      }
    }
  }

  static constexpr std::int32_t kFirstKey = 20;

 private:
  std::int32_t width_;
  std::int32_t num_keys_;
  Tensor<Real> original_;
  Tensor<Real> scores_;
  std::vector<std::int32_t> q_idx_;
};

class ScoreKernels : public testing_support::TargetTest {
 protected:
  // Calls use(kernels, scores) for tiles that fill vectors, squares of them, or neither.
  template <class Use>
  static void for_each_tile(const Use& use) {
    for_each_real([&](auto zero) {
      using Real = decltype(zero);
      const auto& kernels = kernels_in<Real>(table());
      for (const std::int32_t vectors : {1, 2, 3}) {
        for (const std::int32_t keys : {3, 10, 37})
          use(kernels, Scores<Real>(kernels, vectors, keys));
      }
    });
  }
};
HEED_RUN_ON_EVERY_TARGET(ScoreKernels);

// With a softcap of 1 it is tanh.
TEST_P(ScoreKernels, CapWithinFourUnitsInTheLastPlace) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    double worst = 0;
    for (Real scale = static_cast<Real>(0x1p-40); scale < 32; scale *= static_cast<Real>(1.07)) {
      Scores<Real> scores(kernels, 1, 128);
      std::vector<Real> given;
      for (std::int32_t j = 1; j < 127; ++j) {
        for (std::int32_t r = 0; r < scores.width(); ++r) {
          const Real x = scale * (1 + static_cast<Real>(j + r) / 150);
          given.push_back((j + r) % 2 == 0 ? x : -x);
          scores(j, r) = given.back();
        }
      }
      kernels.loops.cap(scores.tile(), 1);
      for (std::size_t i = 0; i < given.size(); ++i) {
        const auto at = static_cast<std::int32_t>(i);
        const Real found = scores(1 + at / scores.width(), at % scores.width());
        const long double exact = std::tanh(static_cast<long double>(given[i]));
        const auto rounded = std::abs(static_cast<Real>(exact));
        const Real unit = std::nextafter(rounded, Real{2}) - rounded;
        worst = std::max(worst, static_cast<double>(std::abs(found - exact) / unit));
        ASSERT_LE(std::abs(found), 1) << given[i];
      }
    }
    EXPECT_LE(worst, 4);
    RecordProperty(sizeof(Real) == 8 ? "ulp_double" : "ulp_float", std::to_string(worst));
  });
}

TEST_P(ScoreKernels, CapKeepsNaNAndBoundsInfinity) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    Scores<Real> scores(kernels, 3, 3);
    scores(1, 0) = kInfinityOf<Real>;
    scores(1, 1) = -kInfinityOf<Real>;
    scores(1, 2) = std::numeric_limits<Real>::quiet_NaN();
    kernels.loops.cap(scores.tile(), 3);
    EXPECT_EQ(scores(1, 0), 3);
    EXPECT_EQ(scores(1, 1), -3);
    EXPECT_TRUE(std::isnan(scores(1, 2)));
  });
}

// Numbers for every row and key, or one per key; contiguous or with a stride.
template <class T>
struct Elements {
  std::vector<T> memory;
  std::vector<const T*> rows;
  std::int64_t stride;

  Elements(std::int32_t width, std::int32_t keys, bool is_shared, std::int64_t key_stride)
      : stride(key_stride) {
    const std::int64_t row = keys * key_stride + 1;
    for (std::int64_t i = 0; i < width * row; ++i) {
      memory.push_back(static_cast<T>(i * 7 % 13 > 5 ? i * 7 % 13 : 0));
    }
    for (std::int32_t r = 0; r < width; ++r) {
      rows.push_back(memory.data() + (is_shared ? 0 : r * row));
    }
  }
  T operator()(std::int32_t j, std::int32_t r) const {
    return rows[static_cast<std::size_t>(r)][j * stride];
  }
};

template <class T, class Check>
void for_each_elements(std::int32_t width, std::int32_t keys, const Check& check) {
  for (const bool is_shared : {false, true}) {
    for (const std::int64_t stride : {0, 1, 3}) {
      Elements<T> elements(width, keys, is_shared, stride);
      check(elements);
    }
  }
}

TEST_P(ScoreKernels, AddRowsOfABias) {
  for_each_tile([](const auto& kernels, const auto& all_scores) {
    using Scores = std::remove_cvref_t<decltype(all_scores)>;
    using Real = typename Scores::Number;
    const std::int32_t width = all_scores.width();
    for_each_elements<Real>(width, all_scores.num_keys(), [&](const Elements<Real>& bias) {
      Scores scores = all_scores;
      kernels.loops.add_rows(scores.tile(), {bias.rows.data(), bias.stride});
      scores.expect(
          [&](Real before, std::int32_t j, std::int32_t r) { return before + bias(j, r); });
    });
  });
}

// Masks are floats for all types of scores.
TEST_P(ScoreKernels, AddMaskRowsAndHide) {
  for_each_tile([](const auto& kernels, const auto& all_scores) {
    using Scores = std::remove_cvref_t<decltype(all_scores)>;
    using Real = typename Scores::Number;
    const std::int32_t width = all_scores.width();
    for_each_elements<float>(width, all_scores.num_keys(), [&](Elements<float>& added) {
      for (std::size_t i = 0; i < added.memory.size(); i += 4) {
        added.memory[i] = -kInfinityOf<float>;
      }
      Scores scores = all_scores;
      kernels.loops.add_mask_rows(scores.tile(), {added.rows.data(), added.stride});
      scores.expect(
          [&](Real before, std::int32_t j, std::int32_t r) { return before + added(j, r); });
      // Hidden for every score.
      Scores others = all_scores;
      others(1, 0) = std::numeric_limits<Real>::quiet_NaN();
      scores(1, 0) = -kInfinityOf<Real>;
      kernels.add_mask(others.tile(), &scores(0, 0));
      EXPECT_EQ(others(1, 0), -kInfinityOf<Real>);
    });
  });
}

TEST_P(ScoreKernels, HidesKeysByBitsOfRows) {
  for_each_tile([](const auto& kernels, const auto& all_scores) {
    using Scores = std::remove_cvref_t<decltype(all_scores)>;
    using Real = typename Scores::Number;
    std::array<std::uint64_t, kernels::kTileKeys> seen;
    for (std::size_t j = 0; j < seen.size(); ++j) seen[j] = 0x9E3779B97F4A7C15ULL * (j + 1);
    Scores scores = all_scores;
    scores(1, 0) = std::numeric_limits<Real>::quiet_NaN();
    seen[1] &= ~std::uint64_t{1};
    kernels.hide(scores.tile(), seen.data());
    EXPECT_EQ(scores(1, 0), -kInfinityOf<Real>);
    scores.expect([&](Real before, std::int32_t j, std::int32_t r) {
      return (seen[static_cast<std::size_t>(j)] >> r & 1) == 0 ? -kInfinityOf<Real> : before;
    });
  });
}

TEST_P(ScoreKernels, AlibiTakesDistances) {
  for_each_tile([](const auto& kernels, auto scores) {
    using Real = typename decltype(scores)::Number;
    Tensor<Real> slopes({scores.width()});
    for (std::int32_t r = 0; r < scores.width(); ++r) {
      slopes.data()[r] = static_cast<Real>(0.125) * static_cast<Real>(r % 5);
    }
    kernels.loops.add_alibi(scores.tile(), slopes.data());
    // Slopes have few bits, so that no product is rounded.
    scores.expect([&](Real before, std::int32_t j, std::int32_t r) {
      const std::int32_t distance = std::abs(37 * r % 50 - (scores.kFirstKey + j));
      return before - slopes.data()[r] * static_cast<Real>(distance);
    });
  });
}

TEST_P(ScoreKernels, CountWhatIsNotHidden) {
  for_each_tile([](const auto& kernels, auto scores) {
    using Real = typename decltype(scores)::Number;
    Tensor<Real> counts({scores.width()});
    std::vector<Real> expected(static_cast<std::size_t>(scores.width()), 5);
    std::fill_n(counts.data(), scores.width(), Real{5});
    for (std::int32_t r = 0; r < scores.width(); ++r) {
      for (std::int32_t j = 1; j < scores.num_keys() - 1; ++j) {
        if ((j + r) % 3 == 0) {
          scores(j, r) = -kInfinityOf<Real>;
        } else {
          ++expected[static_cast<std::size_t>(r)];
        }
      }
    }
    kernels.count_seen(scores.tile(), counts.data());
    EXPECT_EQ(testing_support::elements_of(counts), expected);
  });
}

}  // namespace
}  // namespace heed
