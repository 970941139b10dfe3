// Caches of eight and four bits: the stored numbers, their places, and their errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/cache/model.h"
#include "attention/cache/paged_keys.h"
#include "attention/cache/rotation.h"
#include "attention/cache/sequence_state.h"
#include "heed/attention/kv_cache.h"
#include "support/fused.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using kernels::StoredNumbers;
using kernels::StoredTile;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

KvConfig config(KvStorage storage, std::int64_t head_dim = 64, std::int64_t page_size = 128) {
  return {.num_kv_heads = 2,
          .head_dim = head_dim,
          .key_storage = storage,
          .value_storage = storage,
          .page_size = page_size};
}

// Returns the root mean square of a − b.
double distance(FloatView a, FloatView b) {
  const Tensor<float> left = to_tensor(a);
  const Tensor<float> right = to_tensor(b);
  double sum = 0;
  for (std::int64_t i = 0; i < left.num_elements(); ++i) {
    sum += std::pow(left.data()[i] - right.data()[i], 2);
  }
  return std::sqrt(sum / static_cast<double>(left.num_elements()));
}

// Returns number d of position j of a group, by the layout in kernels/stored_tile.h.
float number_at(const StoredNumbers& numbers, std::size_t group, std::int64_t j, std::int64_t d,
                std::int64_t stored_dim) {
  const std::byte* const bytes = numbers.groups[group];
  float plain = 0;
  kernels::with_number(numbers.storage, [&](auto kind) {
    using T = decltype(kind);
    const std::byte* const at =
        numbers.is_columns
            ? bytes + (d * 16 + j) * static_cast<std::int64_t>(sizeof(T))
            : bytes + j * numbers.row_stride + d * static_cast<std::int64_t>(sizeof(T));
    plain = static_cast<float>(*reinterpret_cast<const T*>(at));
  });
  if (!numbers.is_quantised()) return plain;
  if (numbers.storage == KvStorage::kInt8) {
    const std::int64_t columns = (stored_dim + 15) / 16 * 16;
    const auto byte =
        static_cast<int>(numbers.is_columns ? bytes[d / 4 * 64 + j * 4 + d % 4]
                                            : bytes[(j / 4 * columns + d) * 4 + j % 4]);
    return static_cast<float>(byte - 128) * numbers.scales[group][j];
  }
  const float scale = numbers.scales[group][d / 32 * 16 + j];
  if (numbers.is_columns) {
    const auto byte = static_cast<int>(bytes[d / 8 * 64 + j * 4 + d % 4]);
    const int nibble = d % 8 < 4 ? byte & 15 : byte >> 4;
    return static_cast<float>(nibble - 8) * scale;
  }
  const auto byte =
      static_cast<int>(bytes[((j / 4 * (stored_dim / 32) + d / 32) * 16 + d % 16) * 4 + j % 4]);
  const int nibble = d % 32 < 16 ? byte & 15 : byte >> 4;
  return static_cast<float>(nibble - 8) * scale;
}

TEST(KvCacheQuantised, StoredTilesLieAsTheKernelsReadThem) {
  constexpr std::int64_t kLength = 200;
  constexpr std::int64_t kDim = 40;  // stored as 64 in int4
  for (const KvStorage storage : kKvStorages) {
    for (const std::int64_t page_size : {16, 32, 64, 128}) {
      KvSequence sequence(config(storage, kDim, page_size));
      sequence.append(normal<float>({2, kLength, kDim}, 1), normal<float>({2, kLength, kDim}, 2));
      const auto& state = detail::SequenceState::of("test", sequence);
      const PagedKeys keys(nullptr, state);
      const std::int64_t stored_dim = state.pool->layout().key.stored_dim;
      EXPECT_EQ(stored_dim, storage == KvStorage::kInt4 ? 64 : kDim);
      Tensor<float> key_rows({128, stored_dim});
      Tensor<float> value_rows({128, stored_dim});
      for (const RowRange range : {RowRange{0, 128}, RowRange{128, kLength}}) {
        for (const std::int64_t head : {0, 1}) {
          const StoredTile tile = keys.stored_tile(0, head, range);
          const auto as_rows = keys.tile(0, head, range, {key_rows.data(), value_rows.data()});
          ASSERT_EQ(tile.first_key, range.begin);
          ASSERT_EQ(tile.num_keys, range.end - range.begin);
          ASSERT_TRUE(tile.key.is_columns);
          ASSERT_FALSE(tile.value.is_columns);
          for (std::int64_t k = 0; k < tile.num_keys; ++k) {
            for (std::int64_t d = 0; d < stored_dim; ++d) {
              const auto group = static_cast<std::size_t>(k / 16);
              ASSERT_EQ(as_rows.key[k * as_rows.key_stride + d],
                        number_at(tile.key, group, k % 16, d, stored_dim))
                  << to_string(storage) << " key " << k << " dimension " << d;
              ASSERT_EQ(as_rows.value[k * as_rows.value_stride + d],
                        number_at(tile.value, group, k % 16, d, stored_dim))
                  << to_string(storage) << " value " << k << " dimension " << d;
            }
          }
          for (std::int64_t g = 0; g < (tile.num_keys + 15) / 16; ++g) {
            const auto at = static_cast<std::size_t>(g);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tile.key.groups[at]) % 64, 0U);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tile.value.groups[at]) % 64, 0U);
          }
        }
      }
    }
  }
}

TEST(KvCacheQuantised, WhatIsGoneMayBeRead) {
  KvSequence sequence(config(KvStorage::kInt4, 32, 16), {.window = 20, .sinks = 2});
  for (int i = 0; i < 150; ++i) {
    sequence.append(normal<float>({2, 1, 32}, 1), normal<float>({2, 1, 32}, 2));
  }
  const PagedKeys keys(nullptr, detail::SequenceState::of("test", sequence));
  const StoredTile tile = keys.stored_tile(0, 1, {0, 128});
  for (std::size_t g = 1; g < 8; ++g) {
    EXPECT_EQ(number_at(tile.key, g, 3, 5, 32), 0) << g;
    EXPECT_EQ(number_at(tile.value, g, 3, 5, 32), 0) << g;
  }
  EXPECT_NE(tile.key.scales[0][1], 0);
}

TEST(KvCacheQuantised, DequantisedIsNearWhatWasGiven) {
  const auto key = normal<float>({2, 500, 128}, 1);
  const auto value = normal<float>({2, 500, 128}, 2);
  // The error of normal numbers is 0.29 of a step on average. A step is 1/127 of the largest of 128
  // numbers for int8, and 1/7 of the largest of 32 for int4.
  const std::pair<KvStorage, double> bounds[] = {{KvStorage::kFloat32, 0},
                                                 {KvStorage::kFloat16, 0.00025},
                                                 {KvStorage::kBFloat16, 0.0018},
                                                 {KvStorage::kInt8, 0.007},
                                                 {KvStorage::kInt4, 0.1}};
  double last = -1;
  for (const auto& [storage, bound] : bounds) {
    KvSequence sequence(config(storage, 128));
    sequence.append(key, value);
    const KvTensors found = sequence.dequantised();
    EXPECT_LE(distance(found.key, key), bound) << to_string(storage);
    EXPECT_LE(distance(found.value, value), bound) << to_string(storage);
    EXPECT_GT(distance(found.key, key), last) << to_string(storage);
    last = distance(found.key, key);
  }
}

TEST(KvCacheQuantised, AttentionIsNearThatOfFloats) {
  const auto query = normal<float>({1, 4, 500, 128}, 1);
  const auto key = normal<float>({1, 2, 500, 128}, 2);
  const auto value = normal<float>({1, 2, 500, 128}, 3);
  const auto exact = attention(query, key, value, {.mask = causal()});
  const std::pair<KvStorage, double> bounds[] = {{KvStorage::kFloat16, 0.0001},
                                                 {KvStorage::kBFloat16, 0.0006},
                                                 {KvStorage::kInt8, 0.002},
                                                 {KvStorage::kInt4, 0.03}};
  for (const auto& [storage, bound] : bounds) {
    KvSequence sequence(config(storage, 128));
    sequence.append(key, value);
    EXPECT_LE(distance(attend(query, sequence, {.mask = causal()}), exact), bound)
        << to_string(storage);
  }
}

bool is_quantised(KvStorage storage) {
  return storage == KvStorage::kInt8 || storage == KvStorage::kInt4;
}

// Rows of int4 are rotated by sums of floats and rotated back.
constexpr double kRotated = 1e-5;

TEST(KvCacheQuantised, AttendIsAttentionOverDequantised) {
  const auto query = normal<float>({1, 6, 7, 48}, 1);
  const auto tokens = normal<float>({1, 2, 150, 48}, 2);
  for (const KvStorage keys : kKvStorages) {
    for (const KvStorage values : kKvStorages) {
      KvConfig mixed = config(keys, 48, 32);
      mixed.value_storage = values;
      KvSequence sequence(mixed);
      sequence.append(tokens, tokens);
      const KvTensors stored = sequence.dequantised();
      const auto expected =
          attention_with_lse(query, stored.key.view().to_rank(4), stored.value.view().to_rank(4),
                             {.mask = causal(), .query_offset = 143});
      const auto found = attend_with_lse(query, sequence, {.mask = causal()});
      const std::string what =
          std::string(to_string(keys)) + " and " + std::string(to_string(values));
      if (is_quantised(keys) || is_quantised(values)) {
        EXPECT_LE(max_difference(found.out, expected.out), kRotated) << what;
        EXPECT_LE(max_difference(found.lse, expected.lse), kRotated) << what;
      } else {
        EXPECT_TRUE(same_bits(found.out, expected.out)) << what;
        EXPECT_TRUE(same_bits(found.lse, expected.lse)) << what;
      }
    }
  }
}

// Compared on the stored numbers: at most twice the error of plain loops in float.
TEST(KvCacheQuantised, EveryOptionIsAsExactAsPlainLoops) {
  Tensor<float> slopes({6});
  for (std::int64_t h = 0; h < 6; ++h) slopes(h) = std::exp2(-static_cast<float>(h));
  const std::pair<const char*, AttentionOptions> kinds[] = {
      {"plain", {}},
      {"causal", {.mask = causal()}},
      {"irregular mask", {.mask = causal() & Mask::where([](auto, auto, auto q, auto k) {
                                    return (k % 3 != 1) | (k == q);
                                  })}},
      {"slopes", {.mask = causal(), .alibi_slopes = slopes.view()}},
      {"softcap", {.softcap = 3.0F}},
      {"dropout", {.mask = causal(), .dropout = {.probability = 0.2F, .seed = 7}}}};
  const auto key = normal<float>({1, 2, 300, 64}, 4);
  const auto value = normal<float>({1, 2, 300, 64}, 5);
  for (const KvStorage storage : {KvStorage::kInt8, KvStorage::kInt4}) {
    KvSequence sequence(config(storage, 64, 16));
    sequence.append(key, value);
    const KvTensors stored = sequence.dequantised();
    for (const std::int64_t queries : {1, 5, 60}) {
      const auto query = normal<float>({1, 6, queries, 64}, static_cast<std::uint64_t>(queries));
      for (const auto& [name, options] : kinds) {
        AttentionOptions of_tensors = options;
        of_tensors.query_offset = 300 - queries;
        const auto found = attend_with_lse(query, sequence, options);
        const testing_support::InputViews in{query, stored.key.view().to_rank(4),
                                             stored.value.view().to_rank(4)};
        const auto expected = testing_support::expected_of(in, of_tensors);
        if (storage == KvStorage::kInt8) {
          // With few results a plain computation is often lucky.
          const double score_roundings = queries < 60 ? 2 : 0;
          EXPECT_EQ(testing_support::inaccuracy(found, expected, score_roundings), "")
              << name << " " << queries;
        } else {
          EXPECT_LE(max_difference(found.out, expected.plain.out), kRotated)
              << name << " " << queries;
        }
      }
    }
  }
}

TEST(KvCacheQuantised, DecodeAndPrefillOverOneCacheHaveTheSameBits) {
  const auto query = normal<float>({1, 4, 200, 40}, 1);
  const auto key = normal<float>({1, 2, 200, 40}, 2);
  const auto value = normal<float>({1, 2, 200, 40}, 3);
  for (const KvStorage storage : kKvStorages) {
    KvSequence whole(config(storage, 40));
    whole.append(key, value);
    const auto expected = attend(query, whole, {.mask = causal()});
    KvSequence grown(config(storage, 40, 16));
    for (std::int64_t i = 0; i < 200; ++i) {
      grown.append(key.view().slice(2, i, i + 1), value.view().slice(2, i, i + 1));
      const auto one = attend(query.view().slice(2, i, i + 1), grown, {.mask = causal()});
      ASSERT_TRUE(same_bits(one, to_tensor(expected.view().slice(2, i, i + 1))))
          << to_string(storage) << " at " << i;
    }
  }
}

TEST(KvCacheQuantised, ABoundedSequenceSeesWhatAnUnboundedOneDoes) {
  const auto query = normal<float>({1, 4, 400, 40}, 1);
  const auto key = normal<float>({1, 2, 400, 40}, 2);
  const auto value = normal<float>({1, 2, 400, 40}, 3);
  const auto seen = [](auto, auto, auto q, auto k) { return (k < 3) | (k > q - 21); };
  for (const KvStorage storage : kKvStorages) {
    KvSequence whole(config(storage, 40));
    whole.append(key, value);
    const auto expected = attend(query, whole, {.mask = causal() & Mask::where(seen)});
    // One append exceeds the window.
    KvSequence bounded(config(storage, 40, 16), {.window = 21, .sinks = 3, .max_append = 50});
    for (std::int64_t i = 0; i < 400; i += 50) {
      bounded.append(key.view().slice(2, i, i + 50), value.view().slice(2, i, i + 50));
      const auto some = attend(query.view().slice(2, i, i + 50), bounded, {.mask = causal()});
      ASSERT_TRUE(same_bits(some, to_tensor(expected.view().slice(2, i, i + 50))))
          << to_string(storage) << " at " << i;
    }
    EXPECT_LE(bounded.num_pages(), 1 + 5 + 1);
  }
}

TEST(KvCacheQuantised, HalfPrecisionQueriesOverFourBits) {
  const auto query = normal<float>({1, 4, 3, 40}, 1);
  const auto half = testing_support::converted<BFloat16>(query);
  const auto tokens = normal<float>({1, 2, 50, 40}, 2);
  KvSequence sequence(config(KvStorage::kInt4, 40));
  sequence.append(tokens, tokens);
  const auto found = attend(half, sequence);
  const auto expected = attend(testing_support::converted<float>(half), sequence);
  EXPECT_TRUE(same_bits(found, testing_support::converted<BFloat16>(expected)));
}

TEST(KvCacheQuantised, RotationSpreadsAnOutlier) {
  auto tokens = normal<float>({2, 200, 64}, 1);
  for (std::int64_t k = 0; k < 200; ++k) tokens(0, k, 17) *= 30;
  KvSequence sequence(config(KvStorage::kInt4));
  sequence.append(tokens, tokens);
  const auto found = sequence.dequantised();
  // Without the rotation the other numbers of the group of 32 would mostly be 0: an error of about
  // 1.
  EXPECT_LE(distance(found.key.view().slice(2, 0, 16), tokens.view().slice(2, 0, 16)), 0.45);
}

TEST(KvCacheQuantised, TheRotationIsItsOwnInverse) {
  for (const std::int64_t dim : {32, 64, 96, 128, 160}) {
    const auto row = normal<float>({dim}, 3);
    Tensor<float> rotated = row;
    detail::rotate(rotated.data(), dim);
    double before = 0;
    double after = 0;
    for (std::int64_t d = 0; d < dim; ++d) {
      before += row(d) * row(d);
      after += rotated(d) * rotated(d);
    }
    EXPECT_NEAR(after / before, 1, 1e-6);
    EXPECT_GE(max_difference(rotated, row), 0.1);
    detail::rotate(rotated.data(), dim);
    EXPECT_LE(max_difference(rotated, row), 1e-6);
  }
}

TEST(KvCacheQuantised, WhatIsNotFiniteIsRefused) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const KvStorage storage : {KvStorage::kInt8, KvStorage::kInt4}) {
      KvSequence sequence(config(storage));
      const auto good = normal<float>({2, 5, 64}, 1);
      sequence.append(good, good);
      auto tokens = good;
      tokens(1, 3, 9) = bad;
      const std::string text = "of position 8 and key head 1 holds ";
      EXPECT_THAT([&] { sequence.append(good, tokens); },
                  ThrowsMessage<InvalidArgument>(HasSubstr("KvSequence::append: value " + text)));
      EXPECT_THAT([&] { sequence.append(tokens, good); },
                  ThrowsMessage<InvalidArgument>(HasSubstr(
                      std::string(", but ") + std::string(to_string(storage)) + " takes ")));
      EXPECT_EQ(sequence.length(), 5);
    }
  }
  KvSequence sequence(config(KvStorage::kInt4));
  const Tensor<float> large({2, 1, 64}, std::vector<float>(128, 3e38F));
  EXPECT_THAT([&] { sequence.append(large, large); }, Refuses("key head 0", "3e+38"));
}

TEST(KvCacheQuantised, ExtremesAreStored) {
  const auto stored_of = [](KvStorage storage, float number) {
    KvSequence sequence(config(storage));
    const Tensor<float> tokens({2, 1, 64}, std::vector<float>(128, number));
    sequence.append(tokens, tokens);
    return sequence.dequantised().value(1, 0, 63);
  };
  EXPECT_EQ(stored_of(KvStorage::kFloat16, 70000), std::numeric_limits<float>::infinity());
  EXPECT_EQ(stored_of(KvStorage::kInt8, 0), 0);
  EXPECT_EQ(stored_of(KvStorage::kInt4, 0), 0);
  EXPECT_NEAR(stored_of(KvStorage::kInt4, 0x0.ffffp112F), 0x1p112F, 0x1p100F);
  EXPECT_EQ(stored_of(KvStorage::kInt8, -3e38F), -3e38F);
  EXPECT_EQ(stored_of(KvStorage::kInt8, 1e-45F), 0);  // its scale would be 0
  EXPECT_NEAR(stored_of(KvStorage::kInt8, 1e-40F), 1e-40F, 1e-42F);
}

}  // namespace
}  // namespace heed
