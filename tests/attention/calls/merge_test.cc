// Results over parts of the keys, merged, equal the result over all keys.
#include "heed/attention/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/online_softmax.h"
#include "heed/attention/packed.h"
#include "heed/attention/position.h"
#include "heed/attention/reference.h"
#include "heed/core/parallel.h"
#include "support/exact.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::elements_of;
using testing_support::exactly;
using testing_support::ExactOptions;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::same_bits;

using testing_support::kInfinity;
using testing_support::kNaN;

// --- one row

template <class Real>
class OnlineSoftmaxOf : public testing::Test {
 protected:
  static constexpr Real kInfinite = std::numeric_limits<Real>::infinity();
  static constexpr Real kEpsilon = std::numeric_limits<Real>::epsilon();

  struct Row {
    Real lse;
    std::vector<Real> out;
  };
  static Row normalised(const OnlineSoftmax<Real>& softmax) {
    Row row{0, std::vector<Real>(softmax.out.size())};
    row.lse = softmax.normalise(row.out);
    return row;
  }

  // Returns the state over some drawn keys with two numbers each.
  static OnlineSoftmax<Real> drawn(std::mt19937& random, double size) {
    std::normal_distribution<double> distribution;
    OnlineSoftmax<Real> softmax(2);
    for (std::uint32_t keys = random() % 6; keys > 0; --keys) {
      const auto score = static_cast<Real>(size * distribution(random));
      softmax.add(score, std::array{static_cast<Real>(distribution(random)),
                                    static_cast<Real>(distribution(random))});
    }
    return softmax;
  }
  static OnlineSoftmax<Real> merged(OnlineSoftmax<Real> a, const OnlineSoftmax<Real>& b) {
    a.merge(b);
    return a;
  }
};

using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(OnlineSoftmaxOf, Reals);

TYPED_TEST(OnlineSoftmaxOf, KeysOneByOne) {
  using Real = TypeParam;
  OnlineSoftmax<Real> softmax(1);
  softmax.add(std::log(Real{2}), std::array{Real{10}});
  softmax.add(std::log(Real{5}), std::array{Real{20}});
  softmax.add(std::log(Real{1}), std::array{Real{30}});
  const auto row = this->normalised(softmax);
  EXPECT_NEAR(row.out[0], (2 * 10 + 5 * 20 + 1 * 30) / 8.0, 100 * this->kEpsilon);
  EXPECT_NEAR(row.lse, std::log(8.0), 4 * this->kEpsilon);
}

TYPED_TEST(OnlineSoftmaxOf, HasSeenNothing) {
  using Real = TypeParam;
  OnlineSoftmax<Real> softmax(2);
  softmax.add(-this->kInfinite, std::array{Real{kNaN}, Real{1}});
  softmax.merge(OnlineSoftmax<Real>(2));
  EXPECT_TRUE(softmax.is_empty());
  const auto row = this->normalised(softmax);
  EXPECT_THAT(row.out, ElementsAre(0, 0));
  EXPECT_EQ(row.lse, -this->kInfinite);
}

// Includes the sign of 0 and a state whose sum is no power of 2.
TYPED_TEST(OnlineSoftmaxOf, WhatHasSeenNothingChangesNoBit) {
  using Real = TypeParam;
  OnlineSoftmax<Real> seen(2);
  seen.add(Real{0.3F}, std::array{-Real{0}, Real{0.1F}});
  seen.add(Real{-1.7F}, std::array{-Real{0}, Real{0.7F}});
  const OnlineSoftmax<Real> nothing(2);
  for (const auto& both : {this->merged(seen, nothing), this->merged(nothing, seen)}) {
    EXPECT_EQ(both.largest, seen.largest);
    EXPECT_EQ(both.sum, seen.sum);
    EXPECT_EQ(both.out, seen.out);
    EXPECT_TRUE(std::signbit(both.out[0]));
  }
}

TYPED_TEST(OnlineSoftmaxOf, MergingIsAssociativeAndCommutative) {
  std::mt19937 random(1);
  for (const double size : {1.0, 30.0, 3000.0}) {
    for (int draw = 0; draw < 300; ++draw) {
      const auto a = this->drawn(random, size);
      const auto b = this->drawn(random, size);
      const auto c = this->drawn(random, size);
      const auto left = this->normalised(this->merged(this->merged(a, b), c));
      const auto right = this->normalised(this->merged(a, this->merged(b, c)));
      const auto turned = this->normalised(this->merged(this->merged(c, b), a));
      // Allows the error of sums of up to 15 terms of magnitude 1, times the rounding of exp of the
      // difference, which is negligible for a large difference.
      for (const auto& other : {right, turned}) {
        if (std::isinf(left.lse)) {
          EXPECT_EQ(left.lse, other.lse);
        } else {
          EXPECT_NEAR(left.lse, other.lse, (8 + std::abs(left.lse)) * this->kEpsilon);
        }
        for (std::size_t d = 0; d < 2; ++d) {
          EXPECT_NEAR(left.out[d], other.out[d], 32 * this->kEpsilon) << size << ' ' << draw;
        }
      }
    }
  }
}

TYPED_TEST(OnlineSoftmaxOf, AScoreOfInfinityOutweighsTheOthers) {
  using Real = TypeParam;
  for (int first = 0; first < 3; ++first) {
    OnlineSoftmax<Real> softmax(1);
    const std::array<Real, 3> scores{this->kInfinite, 7, this->kInfinite};
    const std::array<Real, 3> values{2, 100, 6};
    for (int i = 0; i < 3; ++i) {
      const auto key = static_cast<std::size_t>((first + i) % 3);
      softmax.add(scores[key], std::array{values[key]});
    }
    const auto row = this->normalised(softmax);
    EXPECT_EQ(row.out[0], 4) << first;
    EXPECT_EQ(row.lse, this->kInfinite) << first;
  }
}

TYPED_TEST(OnlineSoftmaxOf, NaNShows) {
  using Real = TypeParam;
  for (int at = 0; at < 3; ++at) {
    OnlineSoftmax<Real> softmax(1);
    for (int key = 0; key < 3; ++key) {
      softmax.add(key == at ? Real{kNaN} : Real{1}, std::array{Real{1}});
    }
    const auto row = this->normalised(softmax);
    EXPECT_TRUE(std::isnan(row.out[0])) << at;
    EXPECT_TRUE(std::isnan(row.lse)) << at;
  }
}

TEST(OnlineSoftmax, SaysWhichSizesDoNotFit) {
  OnlineSoftmax<float> softmax(2);
  std::vector<float> three(3);
  EXPECT_THAT(
      [&] { softmax.add(0, three); },
      ThrowsMessage<InvalidArgument>("OnlineSoftmax::add: 3 elements, expected value_dim, 2"));
  EXPECT_THAT([&] { softmax.merge(OnlineSoftmax<float>(1)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("OnlineSoftmax::merge: 1 elements")));
  EXPECT_THAT([&] { softmax.normalise(three); },
              ThrowsMessage<InvalidArgument>(HasSubstr("OnlineSoftmax::normalise: 3 elements")));
}

// --- whole tensors

constexpr std::int64_t kMergedQueries = 37;
constexpr std::int64_t kMergedKeys = 301;

struct Operands {
  Tensor<float> query = normal<float>({2, 4, kMergedQueries, 16}, 1);
  Tensor<float> key = normal<float>({2, 2, kMergedKeys, 16}, 2);
  Tensor<float> value = normal<float>({2, 2, kMergedKeys, 9}, 3);
};

// Attends to keys first ≤ k < last of the original tensors.
AttentionOutput<float> over_keys(const Operands& in, std::int64_t first, std::int64_t last,
                                 AttentionOptions options) {
  options.query_offset -= first;
  return attention_with_lse(in.query, in.key.view().slice(2, first, last),
                            in.value.view().slice(2, first, last), options);
}

std::vector<AttentionOutput<float>> in_pieces(const Operands& in, int pieces,
                                              AttentionOptions options) {
  std::vector<AttentionOutput<float>> parts;
  std::mt19937 random(static_cast<std::uint32_t>(pieces));
  std::int64_t first = 0;
  for (int i = 1; i <= pieces; ++i) {
    const std::int64_t most = (kMergedKeys - first) / 2;
    const auto width = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
    const std::int64_t last = i == pieces ? kMergedKeys : first + width;
    parts.push_back(over_keys(in, first, last, options));
    options.sinks = {};  // counted in the first part only
    first = last;
  }
  return parts;
}

AttentionOutput<float> merged(const std::vector<AttentionOutput<float>>& parts) {
  const std::vector<AttentionOutputView<float>> views(parts.begin(), parts.end());
  return merge_attention(views);
}

// Merges the parts one after the other, in this order.
AttentionOutput<float> merged_by_two(std::vector<AttentionOutput<float>> parts) {
  AttentionOutput<float> all = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) all = merge_attention(all, parts[i]);
  return all;
}

void expect_close(const AttentionOutput<float>& found, const reference::Result<double>& exact,
                  const std::string& what) {
  EXPECT_LT(max_difference(exactly(found.out), exact.out), 2e-6) << what;
  EXPECT_LT(max_difference(exactly(found.lse), exact.lse), 2e-6) << what;
}

TEST(MergeAttention, KeysInPieces) {
  const Operands in;
  const auto slopes = alibi_slopes(4);
  const auto sinks = normal<float>({4}, 5);
  AttentionOptions terms{.mask = sliding_window(90, 20, Alignment::offset(0)), .softcap = 3};
  terms.alibi_slopes = slopes;
  terms.sinks = sinks;
  terms.query_offset = 150;
  const std::vector<AttentionOptions> all{
      {},
      {.mask = causal(0), .query_offset = 40},
      {.mask = sliding_window(30, 0, Alignment::offset(0)), .query_offset = 100},
      terms};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ExactOptions exact_options(all[i]);
    const auto exact =
        reference::attention(exactly(in.query), exactly(in.key), exactly(in.value), *exact_options);
    for (int pieces = 2; pieces <= 5; ++pieces) {
      const std::string what = "options " + std::to_string(i) + ", " + std::to_string(pieces);
      auto parts = in_pieces(in, pieces, all[i]);
      expect_close(merged(parts), exact, what);
      expect_close(merged_by_two(parts), exact, what + " by two");
      std::reverse(parts.begin(), parts.end());
      expect_close(merged(parts), exact, what + " from behind");
      expect_close(merged_by_two(parts), exact, what + " by two from behind");
    }
  }
}

// A sink is one more key without a value.
TEST(MergeAttention, ASinkCountsOnceForEachPartThatHasIt) {
  const Operands in;
  const Tensor<float> sinks({4}, {3, 3, 3, 3});
  const auto all = attention_with_lse(in.query, in.key, in.value, {.sinks = sinks});
  const auto once =
      merge_attention(over_keys(in, 0, 100, {.sinks = sinks}), over_keys(in, 100, kMergedKeys, {}));
  const auto twice = merge_attention(over_keys(in, 0, 100, {.sinks = sinks}),
                                     over_keys(in, 100, kMergedKeys, {.sinks = sinks}));
  for (std::size_t i = 0; i < all.lse.elements().size(); ++i) {
    const double lse = all.lse.elements()[i];
    EXPECT_NEAR(once.lse.elements()[i], lse, 2e-6);
    EXPECT_NEAR(twice.lse.elements()[i], std::log(std::exp(lse) + std::exp(3.0)), 2e-6);
  }
}

TEST(MergeAttention, RowsThatSawNoKeyChangeNoBit) {
  const Operands in;
  auto seen = attention_with_lse(in.query, in.key, in.value, {});
  seen.out.data()[0] = -0.0F;
  auto nothing = over_keys(in, 0, 0, {});
  for (float& element : nothing.out.elements()) element = kNaN;  // must not be read
  for (const auto& both : {merge_attention(seen, nothing), merge_attention(nothing, seen)}) {
    EXPECT_TRUE(same_bits(both.out, seen.out));
    EXPECT_TRUE(same_bits(both.lse, seen.lse));
  }
  const auto neither = merge_attention(nothing, nothing);
  EXPECT_TRUE(same_bits(neither.out, Tensor<float>(seen.out.shape())));
  for (const float lse : neither.lse.elements()) EXPECT_EQ(lse, -kInfinity);
}

TEST(MergeAttention, InfinityNeverMakesNaN) {
  const std::vector<float> sizes{-kInfinity, -3e38F, -1, 0, 1, 3e38F, kInfinity};
  for (const float a : sizes) {
    for (const float b : sizes) {
      const Tensor<float> four({1, 1}, {a == -kInfinity ? 0.0F : 4.0F});
      const Tensor<float> eight({1, 1}, {b == -kInfinity ? 0.0F : 8.0F});
      const auto both =
          merge_attention({four, Tensor<float>({1}, {a})}, {eight, Tensor<float>({1}, {b})});
      const double weight = a == b ? 0.5 : 1 / (1 + std::exp(double{b} - double{a}));
      const double expected =
          a == -kInfinity && b == -kInfinity ? 0 : 4 * weight + 8 * (1 - weight);
      EXPECT_NEAR(both.out(0, 0), expected, 1e-6) << a << ' ' << b;
      EXPECT_FALSE(std::isnan(both.lse(0))) << a << ' ' << b;
      EXPECT_GE(both.lse(0), std::max(a, b)) << a << ' ' << b;
    }
  }
}

// An infinite key makes the rows that see it non-finite, in whichever part it is, and no other.
TEST(MergeAttention, WhatIsNotFiniteShows) {
  Operands in;
  in.key(0, 0, 120, 3) = kInfinity;
  in.value(1, 1, 130, 2) = kNaN;
  const AttentionOptions options{.mask = causal(0), .query_offset = 100};
  const auto all = attention_with_lse(in.query, in.key, in.value, options);
  for (int pieces = 2; pieces <= 5; ++pieces) {
    const auto found = merged(in_pieces(in, pieces, options));
    for (std::size_t i = 0; i < all.out.elements().size(); ++i) {
      ASSERT_EQ(std::isfinite(found.out.elements()[i]), std::isfinite(all.out.elements()[i])) << i;
    }
    for (std::size_t i = 0; i < all.lse.elements().size(); ++i) {
      ASSERT_EQ(std::isfinite(found.lse.elements()[i]), std::isfinite(all.lse.elements()[i])) << i;
    }
  }
}

TEST(MergeAttention, InDouble) {
  const Operands in;
  const auto query = exactly(in.query);
  const auto key = exactly(in.key);
  const auto value = exactly(in.value);
  const auto all = attention_with_lse(query, key, value);
  const auto part = [&](std::int64_t first, std::int64_t last) {
    return attention_with_lse(query, key.view().slice(2, first, last),
                              value.view().slice(2, first, last));
  };
  const auto found = merge_attention(part(0, 111), part(111, kMergedKeys));
  EXPECT_LT(max_difference(found.out, all.out), 4e-15);
  EXPECT_LT(max_difference(found.lse, all.lse), 4e-15);
}

template <class Half>
void expect_merged_as_doubles() {
  const Operands in;
  const auto parts = in_pieces(in, 3, {});
  std::vector<AttentionOutput<Half, float>> halves;
  std::vector<AttentionOutput<double>> widened;
  for (const AttentionOutput<float>& part : parts) {
    halves.push_back({Tensor<Half>(part.out.shape()), part.lse});
    widened.push_back({Tensor<double>(part.out.shape()), exactly(part.lse)});
    for (std::size_t i = 0; i < part.out.elements().size(); ++i) {
      const Half half(part.out.elements()[i]);
      halves.back().out.elements()[i] = half;
      widened.back().out.elements()[i] = double{half};
    }
  }
  const std::vector<AttentionOutputView<Half, float>> views(halves.begin(), halves.end());
  const auto found = merge_attention(views);
  const std::vector<AttentionOutputView<double>> exact(widened.begin(), widened.end());
  const auto expected = merge_attention(exact);
  for (std::size_t i = 0; i < found.lse.elements().size(); ++i) {
    ASSERT_EQ(found.lse.elements()[i], static_cast<float>(expected.lse.elements()[i])) << i;
  }
  for (std::size_t i = 0; i < found.out.elements().size(); ++i) {
    const auto rounded = static_cast<float>(expected.out.elements()[i]);
    ASSERT_EQ(found.out.elements()[i].bits(), Half(rounded).bits()) << i;
  }
}

// With equal scores each part has the weight of its number of keys. A float lse of 2.7e3 is off by
// up to 1.2e-4, which would be the error of the weight; one of 1e8 by 4.
TEST(MergeAttention, LargeLogarithmsKeepTheirDigits) {
  for (const float score : {2.7e3F, 1e8F}) {
    Operands in;
    std::fill(in.query.elements().begin(), in.query.elements().end(), 1.0F);
    std::fill(in.key.elements().begin(), in.key.elements().end(), score / 16);
    auto parts = in_pieces(in, 3, {.scale = 1.0F});
    const auto expected = attention(in.query, in.key, in.value, {.scale = 1.0F});
    const double with_low = max_difference(merged(parts).out, expected);
    EXPECT_LT(with_low, 3e-6) << score;
    for (AttentionOutput<float>& part : parts) part.lse_low = {};
    EXPECT_GT(max_difference(merged(parts).out, expected), 2 * with_low) << score;
  }
}

TEST(MergeAttention, HalfPrecisionIsRoundedOnce) {
  expect_merged_as_doubles<Float16>();
  expect_merged_as_doubles<BFloat16>();
}

// Tensors [total_q_len, num_heads, value_dim] and [num_heads, total_q_len], cut from larger ones.
TEST(MergeAttention, PackedAndStrided) {
  const auto query = normal<float>({7, 4, 16}, 1);
  const auto key = normal<float>({9, 2, 16}, 2);
  const std::vector<std::int64_t> queries{0, 3, 7};
  const std::vector<std::int64_t> keys{0, 5, 9};
  const auto packed = attention_packed_with_lse(query, key, key, {queries, keys}, {});
  const auto again = attention_packed_with_lse(query, key, key, {queries, keys}, {});
  const auto lse = packed.lse.view().permute({1, 0});
  const AttentionOutputView<float> part(packed.out.view().slice(1, 1, 3), lse.slice(1, 1, 3));
  const auto both = merge_attention(part, part);
  for (std::int64_t q = 0; q < 7; ++q) {
    for (std::int64_t h = 0; h < 2; ++h) {
      EXPECT_NEAR(both.lse(q, h), packed.lse(h + 1, q) + std::log(2.0F), 1e-6F);
      EXPECT_NEAR(both.out(q, h, 3), packed.out(q, h + 1, 3), 1e-6F);
    }
  }
}

TEST(MergeAttention, SameBitsOnAnyNumberOfThreads) {
  const auto out = normal<float>({64, 100, 64}, 1);
  const auto lse = normal<float>({64, 100}, 2);
  const auto others = normal<float>({64, 100}, 3);
  const auto both = merge_attention({out, lse}, {out, others});
  const ThreadLimit limit(1);
  const auto alone = merge_attention({out, lse}, {out, others});
  EXPECT_TRUE(same_bits(both.out, alone.out));
  EXPECT_TRUE(same_bits(both.lse, alone.lse));
}

TEST(MergeAttention, NothingToMerge) {
  const AttentionOutput<float> no_rows{Tensor<float>({2, 0, 3}), Tensor<float>({2, 0})};
  EXPECT_EQ(merge_attention(no_rows, no_rows).out.shape(), (Shape{2, 0, 3}));
  const AttentionOutput<float> no_values{Tensor<float>({2, 0}),
                                         Tensor<float>({2}, {1, -kInfinity})};
  const auto both = merge_attention(no_values, no_values);
  EXPECT_THAT(elements_of(both.lse), ElementsAre(1 + std::log(2.0F), -kInfinity));
}

TEST(MergeAttention, SaysWhatDoesNotFit) {
  const auto out = normal<float>({2, 3, 4}, 1);
  const auto lse = normal<float>({2, 3}, 2);
  const auto merge = [](const AttentionOutputView<float>& a, const AttentionOutputView<float>& b) {
    return [a, b] { merge_attention(a, b); };
  };
  const auto message = [](const char* text) { return ThrowsMessage<InvalidArgument>(text); };
  EXPECT_THAT(merge({out, lse}, {out.view().slice(0, 0, 1), lse}),
              message("merge_attention: out of part 1 has shape [1, 3, 4], expected [2, 3, 4]"));
  EXPECT_THAT(merge({out, lse.view().permute({1, 0})}, {out, lse}),
              message("merge_attention: lse of part 0 has shape [3, 2], expected [2, 3]"));
  const auto turned = normal<float>({2, 4, 3}, 1);
  EXPECT_THAT(merge({out, lse}, {turned.view().permute({0, 2, 1}), lse}),
              message("merge_attention: out of part 1 has stride 3 in its innermost dimension, "
                      "expected 1"));
  EXPECT_THAT([] { merge_attention(std::span<const AttentionOutputView<float>>()); },
              message("merge_attention: 0 parts, expected at least 1"));
  const Tensor<float> scalar(Shape{}, {1});
  EXPECT_THAT(merge({scalar, scalar}, {scalar, scalar}),
              message("merge_attention: out of part 0 is a scalar, expected [..., value_dim]"));
}

}  // namespace
}  // namespace heed
