// The visited tiles, found by recording which tiles a source of keys returns.
#include "attention/engine/tile_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "attention/engine/passes.h"
#include "attention/engine/seen_tile.h"
#include "attention/keys/tensor_keys.h"
#include "attention/plan/fused.h"
#include "attention/request/call.h"
#include "support/fused.h"
#include "support/tensors.h"

namespace heed { namespace {

using kernels::kTileKeys;
using testing_support::Inputs;
using testing_support::TargetTest;

// The keys of tensors, with a record of the requested tiles.
class RecordedKeys final : public KeySource<float> {
 public:
  explicit RecordedKeys(const TensorKeys<float>& keys) : keys_(keys) {}

  kernels::Tile tile(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                     const Staging<float>& staging) const override {
    ++asked;
    read.insert({kv_head, keys.begin / kTileKeys});
    return keys_.tile(batch, kv_head, keys, staging);
  }

  void describe(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                kernels::StoredTile& tile) const override {
    ++asked;
    read.insert({kv_head, keys.begin / kTileKeys});
    keys_.describe(batch, kv_head, keys, tile);
  }

  mutable std::int64_t asked = 0;
  mutable std::set<std::pair<std::int64_t, std::int64_t>> read;  // key head, tile

 private:
  TensorKeys<float> keys_;
};

class TilesVisited : public TargetTest {
 protected:
  // Returns the tiles of each key head that one thread reads, and the number of reads.
  static std::pair<std::set<std::pair<std::int64_t, std::int64_t>>, std::int64_t> visited(
      const Inputs& in, const Mask& mask) {
    const auto request =
        check_request("test", check_shapes("test", in.query.view(), in.key.view(), in.value.view()),
                      AttentionOptions{.mask = mask});
    const auto schedule = engine::make_schedule(table(), request, Pass::kForward, 1);
    const RecordedKeys keys(
        {table(), request.shape, rows_of(FloatView(in.key)), rows_of(FloatView(in.value))});
    Tensor<float> out({1, in.query.extent(1), in.query.extent(2), in.value.extent(3)});
    ForwardCall<float> job;
    job.request = &request;
    job.query = rows_of(FloatView(in.query));
    job.keys = &keys;
    job.out = rows_of(out.view());
    job.batches = {0, 1};
    engine::forward<float>({&job, 1}, schedule);
    EXPECT_TRUE(
        testing_support::same_bits(out, testing_support::run(table(), in, {.mask = mask}).out));
    return {keys.read, keys.asked};
  }
};
HEED_RUN_ON_EVERY_TARGET(TilesVisited);

// Returns allowed[h][q][k]: heads see different tiles, and in these every key but one.
Tensor<bool> blocks(std::int64_t heads, std::int64_t length, std::int64_t tiles_apart) {
  Tensor<bool> allowed({heads, length, length});
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t q = 0; q < length; ++q)
      for (std::int64_t k = 0; k < length; ++k) {
        allowed(h, q, k) = (k / kTileKeys + h) % tiles_apart == 0 && k % kTileKeys != 5;
      }
  return allowed;
}

TEST_P(TilesVisited, AreThoseThatSomebodySees) {
  const Inputs in({.num_heads = 2, .num_kv_heads = 2, .q_len = 1024, .kv_len = 1024});
  const auto [read, asked] = visited(in, Mask::allow(blocks(2, 1024, 4)));
  EXPECT_EQ(read,
            (std::set<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {0, 4}, {1, 3}, {1, 7}}));
  const auto [all, asked_for_all] = visited(in, Mask());
  EXPECT_EQ(all.size(), 16U);
  EXPECT_EQ(asked * 4, asked_for_all);
}

TEST_P(TilesVisited, AreNoneWhereAnAdditiveMaskHidesAll) {
  const Inputs in({.q_len = 100, .kv_len = 600});
  Tensor<float> added({600});
  for (std::int64_t k = 128; k < 512; ++k) added(k) = -std::numeric_limits<float>::infinity();
  const auto [read, asked] = visited(in, Mask::additive(added));
  EXPECT_EQ(read, (std::set<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {0, 4}}));
}

// A mask that shows one tile in a hundred and reports it.
class Distant final : public detail::IrregularPart {
 public:
  void check(const ScoreShape&) const override {}
  std::string description() const override { return "distant"; }
  bool visible(const ScoreShape&, const detail::ScoreIndex& at) const override {
    return at.k / kTileKeys % 100 == 7;
  }
  std::int64_t next_key(const ScoreShape&, const detail::RowGroup&,
                        std::int64_t key) const override {
    ++asked;
    const std::int64_t tile = key / kTileKeys;
    return ((tile + 92) / 100 * 100 + 7) * kTileKeys;
  }
  kernels::Visibility visibility(const ScoreShape&, const detail::RowGroup&,
                                 RowRange) const override {
    return kernels::Visibility::kAll;
  }
  mutable std::int64_t asked = 0;
};

TEST(TileMap, LeapsOverWhatNobodySees) {
  const auto part = std::make_shared<Distant>();
  const std::int64_t kv_len = 1000 * kTileKeys;
  const BoundMask mask(Mask(part), {.q_len = 1, .kv_len = kv_len});
  std::vector<engine::TileRun> runs(1000);
  engine::TileMap tiles(runs.data());
  const std::int32_t head = 0;
  const std::int32_t position = 0;
  tiles.find(mask, {0, 1, &head, &position}, {0, kv_len});
  ASSERT_EQ(tiles.runs().size(), 10U);
  EXPECT_LE(part->asked, 40);
  EXPECT_EQ(tiles.next(0), 7 * kTileKeys);
  EXPECT_EQ(tiles.next(8 * kTileKeys), 107 * kTileKeys);
  EXPECT_TRUE(tiles.visits(907 * kTileKeys));
  EXPECT_FALSE(tiles.has_mask(907 * kTileKeys));
  EXPECT_EQ(tiles.next(908 * kTileKeys), engine::TileMap::kNone);
}

TEST(TileMap, OfAnIntervalIsOneRun) {
  const BoundMask mask(causal(), {.q_len = 1000, .kv_len = 1000});
  engine::TileRun run{};
  engine::TileMap tiles(&run);
  const std::int32_t heads[] = {0, 0};
  const std::int32_t positions[] = {400, 401};
  tiles.find(mask, {0, 2, heads, positions}, {0, 402});
  EXPECT_EQ(tiles.next(0), 0);
  EXPECT_EQ(tiles.next(384), 384);
  EXPECT_EQ(tiles.next(512), engine::TileMap::kNone);
  tiles.find(mask, {0, 2, heads, positions}, {0, 0});
  EXPECT_EQ(tiles.next(0), engine::TileMap::kNone);
}

// Returns the keys in steps to which the first tile of 300 keys is reduced for some rows.
engine::KeySteps seen_by(const Mask& mask, const std::vector<std::int32_t>& positions) {
  const BoundMask bound(mask, {1, 1, 300, 300});
  const std::vector<std::int32_t> heads(positions.size(), 0);
  detail::RowBits seen;
  seen.fill(detail::KeyBits::all());
  bound.hide({0, static_cast<std::int32_t>(positions.size()), heads.data(), positions.data()},
             {0, kTileKeys}, seen.data());
  detail::KeyBits any;
  for (std::size_t r = 0; r < positions.size(); ++r) any |= seen[r];
  return engine::steps_of(any);
}

TEST(SeenTile, KnowsKeysInSteps) {
  using Steps = engine::KeySteps;
  EXPECT_EQ(seen_by(strided(16), {20, 36, 260}), (Steps{4, 16, 8}));
  EXPECT_EQ(seen_by(columns(50), {1, 2, 3}), (Steps{49, 50, 2}));
  EXPECT_EQ(seen_by(columns(100), {1, 2, 3}), (Steps{99, 1, 1}));
  EXPECT_EQ(seen_by(dilated(20, 7), {3, 10}), (Steps{3, 7, 18}));
  EXPECT_EQ(seen_by(longformer(5, 3), {200, 201}), (Steps{0, 1, 3}));
  EXPECT_EQ(seen_by(strided(16), {20, 37}), (Steps{4, 1, 114}));
  EXPECT_EQ(seen_by(strided(2) & columns(3), {2, 4}), (Steps{2, 6, 21}));
  EXPECT_EQ(seen_by(longformer(5, 3), {9, 200}), (Steps{0, 1, 15}));
  EXPECT_EQ(seen_by(causal(), {2, 4}), (Steps{0, 1, kTileKeys}));
}

// In steps that keep pairs, two keys are a pair where they are one in the tile.
TEST(SeenTile, KeepsPairsOfTheTile) {
  for (std::int32_t first = 0; first < 4; ++first) {
    for (std::int32_t step = 1; step < 10; ++step) {
      for (std::int32_t count = 1; count < 6; ++count) {
        const auto kept = engine::in_pairs_of_tile({first, step, count});
        std::vector<std::int32_t> partner(kTileKeys, -1);
        for (std::int32_t i = 0; i + 1 < kept.count; i += 2) {
          partner.at(kept.first + i * kept.step) = kept.first + (i + 1) * kept.step;
          partner.at(kept.first + (i + 1) * kept.step) = kept.first + i * kept.step;
        }
        const std::int32_t last = kept.first + (kept.count - 1) * kept.step;
        EXPECT_EQ(last, first + (count - 1) * step);
        const auto is_asked = [&](std::int32_t key) {
          return key >= first && key <= last && (key - first) % step == 0;
        };
        for (std::int32_t key = first; key <= last; key += step) {
          SCOPED_TRACE(testing::Message() << first << " " << step << " " << count << ": " << key);
          EXPECT_GE(key, kept.first);
          EXPECT_EQ((key - kept.first) % kept.step, 0);
          const std::int32_t in_tile = key / 2 * 2 + 1 - key % 2;
          EXPECT_EQ(is_asked(partner[key]) ? partner[key] : -1, is_asked(in_tile) ? in_tile : -1);
        }
      }
    }
  }
}

TEST(KeyBits, AreSetsOfKeysOfATile) {
  using detail::KeyBits;
  for (const std::int64_t begin : {-200, -1, 0, 1, 63, 64, 65, 127, 128, 300}) {
    for (const std::int64_t end : {-200, 0, 1, 63, 64, 65, 127, 128, 300}) {
      const KeyBits keys = KeyBits::between(begin, end);
      std::int32_t count = 0;
      for (std::int64_t j = 0; j < kTileKeys; ++j) {
        ASSERT_EQ(keys.has(j), begin <= j && j < end) << begin << " " << end << " " << j;
        ASSERT_EQ((~keys).has(j), !keys.has(j));
        count += keys.has(j) ? 1 : 0;
      }
      EXPECT_EQ(keys.count(), count);
      EXPECT_EQ(keys.is_empty(), count == 0);
      if (count == 0) continue;
      EXPECT_EQ(keys.first(), std::max<std::int64_t>(begin, 0));
      EXPECT_EQ(keys.last(), std::min<std::int64_t>(end, kTileKeys) - 1);
    }
  }
  for (const std::int64_t step : {1, 2, 7, 63, 64, 100, 128, 1000}) {
    for (const std::int64_t later : {0, 1, 31, 63, 64, 65, 127, 128, 500}) {
      const KeyBits keys = KeyBits::in_steps(step) << later;
      for (std::int64_t j = 0; j < kTileKeys; ++j) {
        ASSERT_EQ(keys.has(j), j >= later && (j - later) % step == 0) << step << " " << j;
      }
    }
  }
}

}  // namespace
}  // namespace heed
