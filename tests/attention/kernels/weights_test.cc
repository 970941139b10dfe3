// Statistics of the weights of a tile, in float and double, compared with plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "attention/kernels/kernels.h"
#include "support/fused.h"
#include "support/panels.h"

namespace heed { namespace {

using kernels::kernels_in;
using testing_support::awkward_panels;
using testing_support::for_each_real;
using testing_support::kInfinityOf;
using testing_support::normal;
using testing_support::PanelCase;
using testing_support::PanelSizes;

class WeightKernels : public testing_support::TargetTest {};
HEED_RUN_ON_EVERY_TARGET(WeightKernels);

// A tile of weights between 0 and 1, some 0, some equal.
template <class Real>
class Weights {
 public:
  Weights(const kernels::BasicKernelTable<Real>& table, std::int32_t vectors, std::uint32_t seed)
      : width_(vectors * table.lanes),
        weights_(normal<Real>({kernels::kTileKeys, width_}, seed)),
        logs_({kernels::kTileKeys, width_}),
        tile_{.vectors = vectors, .first_key = 256, .begin = 3, .end = 101} {
    for (std::int64_t i = 0; i < weights_.num_elements(); ++i) {
      Real& weight = weights_.data()[i];
      weight = std::max<Real>(0, std::round(weight * 64) / 128);
      logs_.data()[i] = std::log2(weight);
    }
    tile_.weights = weights_.data();
    tile_.log2_weights = logs_.data();
  }

  const kernels::BasicWeightTile<Real>& tile() const { return tile_; }
  Real operator()(std::int32_t key, std::int32_t r) const { return weights_(key, r); }
  std::int32_t width() const { return width_; }

 private:
  std::int32_t width_;
  Tensor<Real> weights_;
  Tensor<Real> logs_;
  kernels::BasicWeightTile<Real> tile_;
};

TEST_P(WeightKernels, FromDenominatorsToWeights) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    constexpr double kEpsilon = std::numeric_limits<Real>::epsilon();
    const auto& kernels = kernels_in<Real>(table());
    for (const PanelSizes& sizes : awkward_panels()) {
      PanelCase<Real> in(kernels, sizes);
      const std::int32_t width = in.width();
      Tensor<Real> scores = in.scores();
      Tensor<Real> weights = in.scores();
      Tensor<Real> largest({width});
      Tensor<Real> sums({width});
      Tensor<Real> minus_low({width});
      std::fill_n(largest.data(), width, -kInfinityOf<Real>);
      in.for_each_tile([&](const auto& tile) {
        kernels.score(tile, in.panel(), scores.data());
        kernels.add_to_sums(tile, in.panel(), scores.data(), {largest.data(), sums.data()});
      });
      for (std::int32_t r = 0; r < width; ++r) minus_low(r) = -std::log2(sums(r));
      in.for_each_tile([&](const auto& tile) {
        kernels.score(tile, in.panel(), scores.data());
        kernels.weigh(tile, in.panel(), {largest.data(), minus_low.data()},
                      {.vectors = sizes.vectors,
                       .first_key = tile.first_key,
                       .weights = weights.data(),
                       .log2_weights = scores.data()});
        const auto asked = in.score_tile(tile, nullptr);
        for (std::int32_t j = asked.begin; j < asked.end; ++j) {
          for (std::int32_t r = 0; r < width; ++r) {
            if (!in.sees(r, tile.first_key + j)) {
              ASSERT_EQ(weights(j, r), 0);
              ASSERT_EQ(scores(j, r), -kInfinityOf<Real>);
              continue;
            }
            const long double lse = static_cast<long double>(largest(r)) -
                                    minus_low(r) * std::numbers::ln2_v<long double>;
            const auto expected =
                static_cast<double>(std::exp(in.score(r, tile.first_key + j) - lse));
            ASSERT_NEAR(weights(j, r), expected, 200 * kEpsilon * expected) << j << " " << r;
            ASSERT_NEAR(std::exp2(scores(j, r)), weights(j, r), 8 * kEpsilon);
          }
        }
      });
      for (std::int32_t r = 0; r < width; ++r) {
        long double sum = 0;
        for (std::int32_t key = 0; key < sizes.kv_len; ++key) {
          if (in.sees(r, key)) sum += std::exp(in.score(r, key) - largest(r));
        }
        ASSERT_NEAR(sums(r), static_cast<double>(sum), 200 * kEpsilon * static_cast<double>(sum));
      }
    }
  });
}

TEST_P(WeightKernels, SumsOverKeysAndRows) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    constexpr double kTolerance = 100 * std::numeric_limits<Real>::epsilon();
    const auto& kernels = kernels_in<Real>(table());
    for (const std::int32_t vectors : {1, 2, 3}) {
      const Weights<Real> a(kernels, vectors, 1);
      const Weights<Real> b(kernels, vectors, 2);
      const std::int32_t width = a.width();
      Tensor<Real> entropy({width});
      Tensor<Real> products({width});
      Tensor<Real> mass({kernels::kTileKeys});
      kernels.add_entropy(a.tile(), entropy.data());
      kernels.add_products(a.tile(), b.tile(), products.data());
      kernels.add_mass(a.tile(), {2, width - 1}, mass.data());
      for (std::int32_t r = 0; r < width; ++r) {
        double sum = 0;
        double product = 0;
        for (std::int32_t key = a.tile().begin; key < a.tile().end; ++key) {
          if (a(key, r) > 0) sum += a(key, r) * std::log2(static_cast<double>(a(key, r)));
          product += static_cast<double>(a(key, r)) * b(key, r);
        }
        ASSERT_NEAR(entropy(r), sum, 20 * kTolerance) << r;
        ASSERT_NEAR(products(r), product, kTolerance) << r;
      }
      for (std::int32_t key = 0; key < kernels::kTileKeys; ++key) {
        double sum = 0;
        for (std::int32_t r = 2; r < width - 1; ++r) sum += a(key, r);
        const bool is_seen = key >= a.tile().begin && key < a.tile().end;
        ASSERT_NEAR(mass(key), is_seen ? sum : 0, kTolerance) << key;
      }
    }
  });
}

TEST_P(WeightKernels, KeepTheLargestAndTheFirstOfEquals) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    for (const std::int32_t vectors : {1, 2, 3}) {
      for (const std::int32_t count : {1, 4, 90}) {
        const Weights<Real> in(kernels, vectors, 5);
        const std::int32_t width = in.width();
        Tensor<Real> weights({count, width});
        Tensor<std::int32_t> keys({count, width});
        std::fill_n(keys.data(), keys.num_elements(), -1);
        kernels.keep_largest(in.tile(), {count, weights.data(), keys.data()});
        for (std::int32_t r = 0; r < width; ++r) {
          std::vector<std::pair<Real, std::int32_t>> sorted;
          for (std::int32_t key = in.tile().begin; key < in.tile().end; ++key) {
            if (in(key, r) > 0) sorted.emplace_back(in(key, r), key);
          }
          std::stable_sort(sorted.begin(), sorted.end(),
                           [](const auto& a, const auto& b) { return a.first > b.first; });
          sorted.resize(static_cast<std::size_t>(count), {0, -1 - in.tile().first_key});
          for (std::int32_t i = 0; i < count; ++i) {
            const auto& [weight, key] = sorted[static_cast<std::size_t>(i)];
            ASSERT_EQ(weights(i, r), weight) << i << " " << r;
            ASSERT_EQ(keys(i, r), in.tile().first_key + key) << i << " " << r;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace heed
