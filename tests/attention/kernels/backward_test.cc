// The kernels of the backward pass, in float and double, compared with plain loops in higher
// precision.
#include "attention/kernels/panel/backward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
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

class BackwardKernels : public testing_support::TargetTest {
 protected:
  // Calls check(kernels, backward kernels, case) for panels of every size.
  template <class Check>
  static void for_each_panel(const Check& check) {
    for_each_real([&](auto zero) {
      using Real = decltype(zero);
      const auto& kernels = kernels_in<Real>(table());
      for (const PanelSizes& sizes : awkward_panels()) {
        SCOPED_TRACE(testing::Message() << sizes.vectors << " " << sizes.head_dim << " "
                                        << sizes.value_dim << " " << sizes.kv_len);
        PanelCase<Real> in(kernels, sizes);
        check(kernels, *kernels.backward, in);
      }
    });
  }
};
HEED_RUN_ON_EVERY_TARGET(BackwardKernels);

// Returns normal numbers [kTileKeys][width], 0 where a row does not see a key of the tile.
template <class Real>
Tensor<Real> seen_numbers(const PanelCase<Real>& in, const kernels::BasicTile<Real>& tile,
                          std::uint32_t seed) {
  auto numbers = normal<Real>({kernels::kTileKeys, in.width()}, seed);
  for (std::int32_t j = 0; j < kernels::kTileKeys; ++j) {
    for (std::int32_t r = 0; r < in.width(); ++r) {
      if (j >= tile.num_keys || !in.sees(r, tile.first_key + j)) numbers(j, r) = 0;
    }
  }
  return numbers;
}

// Computes exp(score − lse), with scores in units of log 2 or natural ones.
TEST_P(BackwardKernels, WeighFromAnLse) {
  for_each_panel([](const auto& kernels, const auto& backward, auto& in) {
    using Real = std::remove_cvref_t<decltype(in.value(0, 0))>;
    constexpr double kEpsilon = std::numeric_limits<Real>::epsilon();
    Tensor<Real> scores = in.scores();
    Tensor<Real> weights = in.scores();
    Tensor<Real> lse({in.width()});
    for (std::int32_t r = 0; r < in.width(); ++r) lse(r) = static_cast<Real>(r) / 7;
    in.for_each_tile([&](const auto& tile) {
      backward.weigh(tile, in.panel(), in.state(), {lse.data()}, weights.data());
      kernels.score(tile, in.panel(), scores.data());
      backward.weigh_scores(tile, in.panel(), {lse.data()}, scores.data());
      for (std::int32_t j = 0; j < tile.num_keys; ++j) {
        for (std::int32_t r = 0; r < in.width(); ++r) {
          if (!in.sees(r, tile.first_key + j)) continue;
          const long double score = in.score(r, tile.first_key + j);
          const long double offset = static_cast<long double>(lse(r));
          const auto expected =
              static_cast<double>(std::exp2(score - offset * std::numbers::log2e_v<long double>));
          ASSERT_NEAR(weights(j, r), expected, 200 * kEpsilon * expected) << j << " " << r;
          const auto natural = static_cast<double>(std::exp(score - offset));
          ASSERT_NEAR(scores(j, r), natural, 200 * kEpsilon * natural) << j << " " << r;
        }
      }
    });
  });
}

TEST_P(BackwardKernels, GradScores) {
  for_each_panel([](const auto& kernels, const auto& backward, auto& in) {
    using Real = std::remove_cvref_t<decltype(in.value(0, 0))>;
    const std::int32_t value_dim = in.panel().value_dim;
    const auto grad_out = normal<Real>({value_dim, in.width()}, 7);
    const auto delta = normal<Real>({in.width()}, 8);
    in.for_each_tile([&](const auto& tile) {
      const Tensor<Real> weights = seen_numbers(in, tile, 9);
      const auto factors = normal<Real>({kernels::kTileKeys, in.width()}, 10);
      for (const bool drops : {false, true}) {
        Tensor<Real> grads = in.scores();
        backward.grad_scores(
            tile, in.panel(),
            {grad_out.data(), weights.data(), delta.data(), drops ? factors.data() : nullptr, true},
            grads.data());
        const auto asked = in.score_tile(tile, nullptr);
        for (std::int32_t j = asked.begin; j < asked.end; ++j) {
          for (std::int32_t r = 0; r < in.width(); ++r) {
            long double grad = 0;
            for (std::int32_t d = 0; d < value_dim; ++d) {
              grad += static_cast<long double>(in.value(tile.first_key + j, d)) * grad_out(d, r);
            }
            if (drops) grad *= factors(j, r);
            ASSERT_NEAR(grads(j, r), static_cast<double>(weights(j, r) * (grad - delta(r))),
                        500 * std::numeric_limits<Real>::epsilon())
                << j << " " << r;
          }
        }
      }
    });
    (void)kernels;
  });
}

// Computes Σ_j key · grad, where NaN keys have gradients of 0.
TEST_P(BackwardKernels, AddToQuery) {
  for_each_panel([](const auto&, const auto& backward, auto& in) {
    using Real = std::remove_cvref_t<decltype(in.value(0, 0))>;
    const std::int32_t head_dim = in.panel().head_dim;
    Tensor<Real> gradient({head_dim, in.width()});
    std::vector<long double> expected(static_cast<std::size_t>(gradient.num_elements()));
    bool guarded = false;
    in.for_each_tile([&](const auto& tile) {
      Tensor<Real> grads = seen_numbers(in, tile, 11);
      backward.add_to_query(tile, in.panel(), guarded, grads.data(), gradient.data());
      guarded = !guarded;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto d = static_cast<std::int32_t>(i) / in.width();
        const auto r = static_cast<std::int32_t>(i) % in.width();
        for (std::int32_t j = 0; j < tile.num_keys; ++j) {
          expected[i] += static_cast<long double>(in.key(tile.first_key + j, d)) * grads(j, r);
        }
      }
    });
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(gradient.elements()[i], static_cast<double>(expected[i]),
                  500 * std::numeric_limits<Real>::epsilon());
    }
  });
}

// Computes Σ_r grad · row, for dims that end within a vector and panels with missing rows.
TEST_P(BackwardKernels, AddToKeys) {
  for_each_panel([](const auto& kernels, const auto& backward, auto& in) {
    using Real = std::remove_cvref_t<decltype(in.value(0, 0))>;
    const std::int32_t dim = in.panel().value_dim;
    const std::int32_t lanes = kernels.lanes;
    const std::int32_t vectors = (dim + lanes - 1) / lanes;
    const std::int32_t num_rows = in.width() - 1;
    const auto rows = normal<Real>({in.width(), dim}, 12);
    // Blocks of column_vectors vectors; the last may be narrower.
    Tensor<Real> blocks({vectors, in.width(), lanes});
    Real* at = blocks.data();
    for (std::int32_t first = 0; first < vectors; first += backward.column_vectors) {
      const std::int32_t columns = std::min(backward.column_vectors, vectors - first) * lanes;
      for (std::int32_t r = 0; r < in.width(); ++r) {
        for (std::int32_t c = 0; c < columns; ++c) {
          const std::int32_t d = first * lanes + c;
          *at++ = d < dim && r < num_rows ? rows(r, d) : 0;
        }
      }
    }
    in.for_each_tile([&](const auto& tile) {
      Tensor<Real> grads = seen_numbers(in, tile, 13);
      for (const bool guarded : {false, true}) {
        Tensor<Real> sums({kernels::kTileKeys, vectors * lanes});
        backward.add_to_keys(tile, in.panel(), grads.data(),
                             {blocks.data(), num_rows, in.width(), vectors}, guarded,
                             {sums.data(), vectors * lanes});
        for (std::int32_t j = 0; j < tile.num_keys; ++j) {
          for (std::int32_t d = 0; d < dim; ++d) {
            long double expected = 0;
            for (std::int32_t r = 0; r < num_rows; ++r) {
              expected += static_cast<long double>(grads(j, r)) * rows(r, d);
            }
            ASSERT_NEAR(sums(j, d), static_cast<double>(expected),
                        200 * std::numeric_limits<Real>::epsilon())
                << j << " " << d;
          }
        }
      }
    });
  });
}

TEST_P(BackwardKernels, DerivativesDistancesAndDelta) {
  for_each_panel([](const auto&, const auto& backward, auto& in) {
    using Real = std::remove_cvref_t<decltype(in.value(0, 0))>;
    constexpr double kTolerance = 500 * std::numeric_limits<Real>::epsilon();
    const std::int32_t width = in.width();
    const auto tile = in.tile(0);
    Tensor<std::int32_t> q_idx({width});
    for (std::int32_t r = 0; r < width; ++r) q_idx(r) = 17 * r % 40;
    auto scores = normal<Real>({kernels::kTileKeys, width}, 14);
    for (Real& score : scores.elements()) score = std::clamp<Real>(score, -3, 3);
    Tensor<Real> derivatives = in.scores();
    Tensor<Real> distances({width});
    auto place = in.score_tile(tile, scores.data());
    place.begin = 0;
    place.end = tile.num_keys;
    place.q_idx = q_idx.data();
    place.derivatives = derivatives.data();
    backward.loops.start_derivatives(place, 3);
    backward.loops.sum_distances(place, scores.data(), distances.data());
    for (std::int32_t r = 0; r < width; ++r) {
      double sum = 0;
      for (std::int32_t j = 0; j < tile.num_keys; ++j) {
        const double tanh = static_cast<double>(scores(j, r)) / 3;
        ASSERT_NEAR(derivatives(j, r), 1 - tanh * tanh, kTolerance);
        sum += scores(j, r) * std::abs(q_idx(r) - j);
      }
      ASSERT_NEAR(distances(r), sum, 1000 * kTolerance) << r;
    }
    backward.loops.start_derivatives(place, 0);
    EXPECT_EQ(derivatives(tile.num_keys - 1, width - 1), 1);

    const std::int32_t dim = in.panel().value_dim;
    const auto grad_out = normal<Real>({dim, width}, 15);
    auto out = normal<Real>({width, dim}, 16);
    auto hidden = normal<Real>({dim, width}, 15);
    for (std::int32_t d = 0; d < dim; d += 2) {
      out(0, d) = 0;
      hidden(d, 0) = std::numeric_limits<Real>::quiet_NaN();
    }
    std::vector<const Real*> rows;
    rows.reserve(static_cast<std::size_t>(width));
    for (std::int32_t r = 0; r < width; ++r) {
      rows.push_back(r == width - 1 ? nullptr : out.data() + std::int64_t{r} * dim);
    }
    Tensor<Real> delta({width});
    Tensor<Real> scratch({dim, width});
    backward.find_delta(in.panel(), hidden.data(), rows.data(), scratch.data(), delta.data());
    for (std::int32_t r = 0; r < width; ++r) {
      double sum = 0;
      for (std::int32_t d = 0; d < dim && r < width - 1; ++d) {
        sum += static_cast<double>(grad_out(d, r)) * out(r, d);
      }
      ASSERT_NEAR(delta(r), sum, kTolerance) << r;
    }
  });
}

TEST_P(BackwardKernels, AddToRowsAndMultiply) {
  for_each_panel([](const auto&, const auto& backward, auto& in) {
    using Real = std::remove_cvref_t<decltype(in.value(0, 0))>;
    const std::int32_t width = in.width();
    const auto tile = in.tile(0);
    const auto asked = in.score_tile(tile, nullptr);
    for (const std::int64_t stride : {1, 2}) {
      auto numbers = seen_numbers(in, tile, 17);
      Tensor<Real> sums({width, 2 * kernels::kTileKeys});
      Tensor<Real*> rows({width});
      for (std::int32_t r = 0; r < width; ++r) rows(r) = &sums(r, 0);
      auto place = asked;
      place.num_rows = width - 1;
      backward.loops.add_to_rows(place, numbers.data(), {rows.data(), stride});
      backward.loops.add_to_rows(place, numbers.data(), {rows.data(), stride});
      for (std::int32_t r = 0; r < width; ++r) {
        for (std::int32_t j = 0; j < tile.num_keys; ++j) {
          const bool is_added = r < width - 1 && j >= asked.begin && j < asked.end;
          ASSERT_EQ(sums(r, j * stride), is_added ? 2 * numbers(j, r) : 0) << j << " " << r;
        }
      }
    }
    auto numbers = seen_numbers(in, tile, 17);
    const auto before = seen_numbers(in, tile, 17);
    auto factors = normal<Real>({kernels::kTileKeys, width}, 18);
    for (std::int32_t j = 0; j < tile.num_keys; ++j) {
      for (std::int32_t r = 0; r < width; ++r) {
        if (before(j, r) == 0) factors(j, r) = kInfinityOf<Real>;
      }
    }
    if (asked.begin >= asked.end) return;
    backward.multiply(tile, in.panel(), factors.data(), numbers.data());
    for (std::int32_t j = asked.begin; j < asked.end; ++j) {
      for (std::int32_t r = 0; r < width; ++r) {
        ASSERT_EQ(numbers(j, r), before(j, r) == 0 ? 0 : before(j, r) * factors(j, r));
      }
    }
  });
}

TEST_P(BackwardKernels, FindKeysThatAreNotFinite) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& backward = *kernels_in<Real>(table()).backward;
    auto numbers = normal<Real>({5, 37}, 1);
    kernels::BasicTile<Real> tile;
    tile.key = numbers.data();
    tile.key_stride = 37;
    tile.num_keys = 5;
    EXPECT_TRUE(backward.has_finite_keys(tile, 35));
    for (std::int32_t column = 0; column < 35; ++column) {
      const Real before = numbers(4, column);
      for (const Real bad : {kInfinityOf<Real>, std::numeric_limits<Real>::quiet_NaN()}) {
        numbers(4, column) = bad;
        ASSERT_FALSE(backward.has_finite_keys(tile, 35)) << column;
      }
      numbers(4, column) = before;
    }
    numbers(4, 35) = kInfinityOf<Real>;
    EXPECT_TRUE(backward.has_finite_keys(tile, 35));
  });
}

// Rows of `dim` numbers, the second of which is missing, and a factor for each.
template <class Real>
struct SomeRows {
  static constexpr std::int32_t kCapacity = kernels::kMaxPanelWidth;

  SomeRows(std::int32_t width, std::int32_t dim)
      : numbers(normal<Real>({kCapacity, dim}, 21)), factors(normal<Real>({kCapacity}, 22)) {
    for (std::int32_t r = 0; r < width; ++r) {
      rows[static_cast<std::size_t>(r)] = r == 1 ? nullptr : numbers.data() + std::int64_t{r} * dim;
    }
  }
  kernels::BasicFactoredRows<Real> get() const { return {rows.data(), factors.data()}; }
  Real product(std::int32_t r, std::int32_t d) const {
    return r == 1 ? 0 : numbers(r, d) * factors(r);
  }

  Tensor<Real> numbers;
  Tensor<Real> factors;
  std::array<const Real*, kCapacity> rows{};
};

TEST_P(BackwardKernels, FillRowsOfVectors) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    const std::int32_t lanes = kernels.lanes;
    for (const std::int32_t dim : {1, lanes - 1, lanes, 2 * lanes + 1, 5 * lanes - 1, 8 * lanes}) {
      if (dim == 0) continue;
      SomeRows<Real> in(lanes, dim);
      const std::int32_t vectors = (dim + lanes - 1) / lanes;
      Tensor<Real> data({lanes, vectors * lanes});
      const kernels::BasicRowVectors<Real> place{data.data(), lanes, lanes, vectors};
      const auto fill = [&] {
        return kernels.backward->fill_rows(in.get(), dim, place, data.data());
      };
      EXPECT_TRUE(fill());
      const std::int32_t strip = kernels.backward->column_vectors * lanes;
      for (std::int32_t r = 0; r < lanes; ++r) {
        for (std::int32_t d = 0; d < vectors * lanes; ++d) {
          const std::int32_t first = d / strip * strip;
          const std::int32_t width = std::min(strip, vectors * lanes - first);
          ASSERT_EQ(data.data()[first * lanes + r * width + d - first],
                    d < dim ? in.product(r, d) : 0)
              << dim << " " << r << " " << d;
        }
      }
      for (const Real bad : {kInfinityOf<Real>, std::numeric_limits<Real>::quiet_NaN()}) {
        in.numbers(1, dim - 1) = bad;
        EXPECT_TRUE(fill()) << "of a row that is not read";
        in.numbers(lanes - 1, dim - 1) = bad;
        EXPECT_EQ(fill(), lanes == 2) << dim;
        in.numbers(lanes - 1, dim - 1) = 1;
      }
    }
  });
}

TEST_P(BackwardKernels, PackRowsTimesTheirFactors) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    const std::int32_t width = 2 * kernels.lanes;
    for (const std::int32_t dim : {1, 4, 7, 64}) {
      const SomeRows<Real> in(width, dim);
      Tensor<Real> packed({dim, width});
      kernels.backward->pack_rows(in.get(), width, dim, packed.data());
      for (std::int32_t d = 0; d < dim; ++d) {
        for (std::int32_t r = 0; r < width; ++r) ASSERT_EQ(packed(d, r), in.product(r, d));
      }
    }
  });
}

}  // namespace
}  // namespace heed
