// The kernels of the forward pass, in float and double, compared with plain loops in higher
// precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "attention/kernels/kernels.h"
#include "attention/kernels/panel/backward.h"
#include "attention/masks/dropout_mask.h"
#include "support/fused.h"
#include "support/guarded_memory.h"
#include "support/panels.h"

namespace heed { namespace {

using kernels::kernels_in;
using testing_support::awkward_panels;
using testing_support::for_each_real;
using testing_support::kInfinityOf;
using testing_support::PanelCase;
using testing_support::PanelSizes;

class PanelKernels : public testing_support::TargetTest {};
HEED_RUN_ON_EVERY_TARGET(PanelKernels);

// Returns 2ˣ of every number x ≤ 30, computed as the weight of a key of dimension 0 at the row's
// offset.
template <class Real>
std::vector<Real> exp2_of(const kernels::BasicKernelTable<Real>& table, std::vector<Real> numbers) {
  PanelCase<Real> one(table, {.vectors = 1, .head_dim = 0, .value_dim = 0}, true);
  kernels::BasicPanelState<Real>& state = one.state();
  state.moving = false;
  Tensor<Real> scratch = one.scores();
  const auto lanes = static_cast<std::size_t>(table.lanes);
  for (std::size_t i = 0; i < numbers.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      state.minus_m[lane] = i + lane < numbers.size() ? numbers[i + lane] : 0;
      state.threshold[lane] = 30;
      state.sum[lane] = 0;
    }
    table.attend(one.tile(0), one.panel(), {}, state, scratch.data());
    for (std::size_t lane = 0; lane < lanes && i + lane < numbers.size(); ++lane) {
      numbers[i + lane] = state.sum[lane];
    }
  }
  return numbers;
}

// Allows 2.5 units in the last place for float, 1.5 for double.
TEST_P(PanelKernels, Exp2IsAccurate) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    std::vector<Real> numbers;
    for (Real x = -100; x <= 30; x += static_cast<Real>(0x1.357p-10)) numbers.push_back(x);
    for (Real x = 1; x > static_cast<Real>(0x1p-70); x *= static_cast<Real>(-0.61)) {
      numbers.push_back(x);
    }
    const std::vector<Real> powers = exp2_of(kernels_in<Real>(table()), numbers);
    double worst = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const long double exact = std::exp2(static_cast<long double>(numbers[i]));
      const auto rounded = static_cast<Real>(exact);
      const Real unit = std::nextafter(rounded, kInfinityOf<Real>) - rounded;
      worst = std::max(worst, static_cast<double>(std::abs(powers[i] - exact) / unit));
    }
    EXPECT_LE(worst, sizeof(Real) == 8 ? 1.5 : 2.5);
    RecordProperty(sizeof(Real) == 8 ? "ulp_double" : "ulp_float", std::to_string(worst));
  });
}

TEST_P(PanelKernels, Exp2AtItsEnds) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    using Bits = std::conditional_t<sizeof(Real) == 8, std::uint64_t, std::uint32_t>;
    // A NaN whose payload is all ones, as user data may contain.
    const Real nan = std::numeric_limits<Real>::quiet_NaN();
    Bits bits;
    std::memcpy(&bits, &nan, sizeof bits);
    bits |= (Bits{1} << (std::numeric_limits<Real>::digits - 3)) - 1;
    Real other_nan;
    std::memcpy(&other_nan, &bits, sizeof bits);
    const Real below = std::nextafter(Real{-100}, Real{-200});
    const std::vector<Real> powers = exp2_of<Real>(
        kernels_in<Real>(table()), {0, 1, -100, below, -1e9F, -std::numeric_limits<Real>::max(),
                                    -kInfinityOf<Real>, nan, other_nan, -nan, -other_nan});
    EXPECT_EQ(powers[0], 1);
    EXPECT_EQ(powers[1], 2);
    EXPECT_EQ(powers[2], 0x1p-100F);
    for (std::size_t i = 3; i < 7; ++i) EXPECT_EQ(powers[i], 0) << i;
    for (std::size_t i = 7; i < 11; ++i) EXPECT_TRUE(std::isnan(powers[i])) << i;
  });
}

// Expects the softmax of the rows of a case over all keys: Σ 2^score and Σ 2^score · value / Σ
// 2^score, with scores times `factor`.
template <class Real>
void expect_state(PanelCase<Real>& in, long double factor) {
  const auto& panel = in.panel();
  const auto& state = in.state();
  constexpr double kEpsilon = std::numeric_limits<Real>::epsilon();
  for (std::int32_t r = 0; r < in.width(); ++r) {
    long double sum = 0;
    std::vector<long double> out(static_cast<std::size_t>(panel.value_dim));
    for (std::int32_t key = 0; key < in.kv_len(); ++key) {
      if (!in.sees(r, key)) continue;
      const long double weight = std::exp2(in.score(r, key) * factor);
      sum += weight;
      for (std::size_t d = 0; d < out.size(); ++d) {
        out[d] += weight * in.value(key, static_cast<std::int32_t>(d));
      }
    }
    const double log = std::log2(state.sum[r]) - state.minus_m[r];
    if (sum == 0) {
      ASSERT_EQ(state.sum[r], 0) << r;
      continue;
    }
    const double expected = std::log2(static_cast<double>(sum));
    ASSERT_NEAR(log, expected, 30 * kEpsilon * (1 + std::abs(expected))) << r;
    for (std::size_t d = 0; d < out.size(); ++d) {
      const Real found = in.out(r, static_cast<std::int32_t>(d)) / state.sum[r];
      ASSERT_NEAR(found, static_cast<double>(out[d] / sum), 100 * kEpsilon) << r << " " << d;
    }
  }
}

std::vector<PanelSizes> with_few_rows(std::vector<PanelSizes> all) {
  for (PanelSizes sizes : awkward_panels()) {
    for (const std::int32_t rows : {1, 2, 5, 12}) {
      sizes.few_rows = rows;
      all.push_back(sizes);
    }
  }
  return all;
}

TEST_P(PanelKernels, AttendAddsTilesToASoftmax) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    for (const PanelSizes& sizes : with_few_rows(awkward_panels())) {
      SCOPED_TRACE(testing::Message()
                   << sizes.vectors << " " << sizes.few_rows << " " << sizes.head_dim << " "
                   << sizes.value_dim << " " << sizes.kv_len);
      PanelCase<Real> in(kernels, sizes);
      Tensor<Real> scratch = in.scores();
      in.for_each_tile([&](const auto& tile) { in.attend(kernels, tile, scratch); });
      EXPECT_TRUE(kernels.is_finite(in.panel(), in.state()));
      expect_state(in, 1);
    }
  });
}

TEST_P(PanelKernels, ScoreAndAbsorbDoInTwoSteps) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    for (const PanelSizes& sizes : awkward_panels()) {
      PanelCase<Real> in(kernels, sizes);
      Tensor<Real> scores = in.scores();
      in.for_each_tile([&](const auto& tile) {
        kernels.score(tile, in.panel(), scores.data());
        for (std::int32_t j = 0; j < tile.num_keys; ++j) {
          for (std::int32_t r = 0; r < in.width(); ++r) {
            if (!in.sees(r, tile.first_key + j)) continue;
            ASSERT_NEAR(scores(j, r), static_cast<double>(in.score(r, tile.first_key + j)),
                        100 * std::numeric_limits<Real>::epsilon());
          }
        }
        kernels.absorb(tile, in.panel(), {}, in.state(), scores.data());
      });
      expect_state(in, std::numbers::log2e_v<long double>);
    }
  });
}

// One state per tile and one over no key: merging gives the state that has seen all at once.
TEST_P(PanelKernels, MergeJoinsStates) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    for (const PanelSizes& sizes : with_few_rows(awkward_panels())) {
      PanelCase<Real> in(kernels, sizes);
      Tensor<Real> scratch = in.scores();
      const auto total = in.state();
      const auto empty = in.new_state();
      in.for_each_tile([&](const auto& tile) {
        in.state() = in.new_state();
        in.attend(kernels, tile, scratch);
        kernels.merge(in.panel(), in.state(), total);
        kernels.merge(in.panel(), empty, total);
      });
      in.state() = total;
      expect_state(in, 1);
    }
  });
}

// NaN values behind a mask: guarding gives the bits of a value of 0.
TEST_P(PanelKernels, GuardedValuesDoNotLeak) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    const PanelSizes sizes{.vectors = 2, .head_dim = 6, .value_dim = 11, .kv_len = 100};
    PanelCase<Real> plain(kernels, sizes);
    PanelCase<Real> guarded(kernels, sizes);
    const std::int32_t hidden = 50;
    for (std::int32_t d = 0; d < sizes.value_dim; ++d) {
      plain.values()(hidden, d) = 0;
      guarded.values()(hidden, d) = std::numeric_limits<Real>::quiet_NaN();
    }
    Tensor<Real> scratch = plain.scores();
    kernels.attend(plain.tile(0), plain.panel(), {}, plain.state(), scratch.data());
    kernels.attend(guarded.tile(0), guarded.panel(), {.guarded = true}, guarded.state(),
                   scratch.data());
    EXPECT_FALSE(kernels.is_finite(guarded.panel(), guarded.state()));
    for (std::int32_t r = 0; r < plain.width(); ++r) {
      for (std::int32_t d = 0; d < sizes.value_dim; ++d) {
        const std::int32_t i = d * plain.width() + r;
        if (plain.sees(r, hidden)) {
          ASSERT_TRUE(std::isnan(guarded.state().out[i]));
        } else {
          ASSERT_EQ(guarded.state().out[i], plain.state().out[i]);
        }
      }
    }
  });
}

// The dropped weights do not depend on the type of the numbers.
TEST_P(PanelKernels, DropoutIsThatOfItsMask) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    const DropoutMask mask({.probability = 0.3, .seed = 0x123456789abcdefULL});
    PanelCase<Real> in(kernels, {.vectors = 3, .head_dim = 2, .value_dim = 3, .kv_len = 200});
    std::vector<std::int32_t> heads;
    std::vector<std::int32_t> q_idx;
    for (std::int32_t r = 0; r < in.width(); ++r) {
      heads.push_back(r % 5);
      q_idx.push_back(1000 * r + 7);
    }
    kernels::BasicDropoutRows<Real> rows{.threshold = mask.threshold(),
                                         .kept_factor = static_cast<Real>(mask.kept_factor()),
                                         .batch = 3,
                                         .heads = heads.data(),
                                         .q_idx = q_idx.data()};
    for (std::size_t round = 0; round < rows.round_keys.size(); ++round) {
      const auto [key0, key1] = philox_round_key(mask.key(), static_cast<int>(round));
      rows.round_keys[round] = {key0, key1};
    }
    Tensor<Real> scratch = in.scores();
    Tensor<Real> factors = in.scores();
    in.for_each_tile([&](const auto& tile) {
      kernels.attend(tile, in.panel(), {.dropout = &rows}, in.state(), scratch.data());
      kernels.backward->fill_dropout(tile, in.panel(), rows, factors.data());
      for (std::int32_t j = 0; j < tile.num_keys; ++j) {
        for (std::int32_t r = 0; r < in.width(); ++r) {
          const auto i = static_cast<std::size_t>(r);
          if (!in.sees(r, tile.first_key + j)) continue;
          const bool is_dropped = mask.factor({3, heads[i], q_idx[i], tile.first_key + j}) == 0;
          ASSERT_EQ(scratch(j, r) == 0, is_dropped) << j << " " << r;
          ASSERT_EQ(factors(j, r), is_dropped ? 0 : rows.kept_factor) << j << " " << r;
        }
      }
    });
  });
}

TEST_P(PanelKernels, PackAndUnpackTurnRowsIntoLanes) {
  for_each_real([](auto zero) {
    using Real = decltype(zero);
    const auto& kernels = kernels_in<Real>(table());
    for (const std::int32_t dim : {1, 2, 7, 16, 35, 64}) {
      const std::int32_t width = 3 * kernels.lanes;
      const auto numbers = testing_support::normal<Real>({width, dim}, 1);
      Tensor<Real> packed({dim, width});
      Tensor<Real> unpacked({width, dim});
      Tensor<Real> factors({width});
      std::vector<const Real*> from;
      std::vector<Real*> to;
      for (std::int32_t r = 0; r < width; ++r) {
        from.push_back(r % 5 == 3 ? nullptr : numbers.data() + r * dim);
        to.push_back(r % 5 == 3 ? nullptr : unpacked.data() + r * dim);
        factors.data()[r] = static_cast<Real>(r + 1);
      }
      kernels.pack(from.data(), width, dim, Real{0.5}, packed.data());
      kernels.unpack(packed.data(), width, dim, factors.data(), to.data());
      for (std::int32_t r = 0; r < width; ++r) {
        for (std::int32_t d = 0; d < dim; ++d) {
          const Real half = r % 5 == 3 ? 0 : numbers(r, d) / 2;
          ASSERT_EQ(packed(d, r), half) << r << " " << d;
          ASSERT_EQ(unpacked(r, d), half * static_cast<Real>(r + 1)) << r << " " << d;
        }
      }
    }
  });
}

// Rows of bfloat16 at even addresses; nothing after the last one is read.
TEST_P(PanelKernels, PackPairsTurnsRowsIntoLanes) {
  if (table().in_pairs == nullptr) GTEST_SKIP() << "no products of pairs";
  const std::int32_t lanes = table().lanes;
  for (const std::int32_t dim : {1, 2, 7, 8, 9, 63, 64, 65}) {
    for (const std::int32_t width : {1, 3, lanes, 3 * lanes}) {
      const std::size_t count = static_cast<std::size_t>(width) * static_cast<std::size_t>(dim);
      const testing_support::GuardedMemory memory(2 * count, testing_support::Edge::kLast);
      auto* const words = static_cast<std::uint16_t*>(memory.data());
      for (std::size_t i = 0; i < count; ++i) words[i] = static_cast<std::uint16_t>(i + 1);
      const auto exists = [&](std::int32_t r) { return r / lanes != 1 && r % 5 != 3; };
      std::vector<const float*> rows(static_cast<std::size_t>(width));
      for (std::int32_t r = 0; r < width; ++r) {
        if (!exists(r)) continue;
        rows[static_cast<std::size_t>(r)] = reinterpret_cast<const float*>(words + r * dim);
      }
      Tensor<float> packed({(dim + 1) / 2, width});
      std::fill_n(packed.data(), (dim + 1) / 2 * width, -1.0F);
      table().in_pairs->pack_pairs(rows.data(), width, dim, packed.data());
      for (std::int32_t r = 0; r < width; ++r) {
        for (std::int32_t d = 0; d < (dim + 1) / 2 * 2; ++d) {
          std::uint16_t pair[2];
          std::memcpy(pair, packed.data() + d / 2 * width + r, sizeof pair);
          const bool is_number = exists(r) && d < dim;
          ASSERT_EQ(pair[d % 2], is_number ? words[r * dim + d] : 0) << r << " " << d;
        }
      }
    }
  }
}

}  // namespace
}  // namespace heed
