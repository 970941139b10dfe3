// The lesson on attention in tiles: recomputes states of rows, bytes, traffic and tiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/mask.h"
#include "heed/attention/online_softmax.h"
#include "heed/attention/plan.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"
#include "support/command.h"

namespace heed { namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;

class FlashAttentionLesson : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const TemporaryFolder folder;
    const auto result = run_command({"lesson", "flash-attention", "--out", folder / "lesson.json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    text = result.out;
    values = json::parse(read_text(folder / "lesson.json"));
  }

  inline static std::string text;
  inline static json values;
};

const std::vector<double>& scores() {
  static const std::vector<double> all{1, 3, 2, 0, 5, 4, -1, 2};
  return all;
}

// Computes softmax(scores) · (1, 2, …) over keys begin to end, without subtracting a maximum.
struct SoftmaxRow {
  double sum = 0;
  double out = 0;
};
SoftmaxRow row_of(std::size_t begin, std::size_t end) {
  SoftmaxRow row;
  for (std::size_t k = begin; k < end; ++k) {
    row.sum += std::exp(scores()[k]);
    row.out += std::exp(scores()[k]) * static_cast<double>(k + 1);
  }
  row.out /= row.sum;
  return row;
}

TEST_F(FlashAttentionLesson, EveryTileHasTheSoftmaxOfTheKeysSoFar) {
  ASSERT_EQ(values["tiles"].size(), 4U);
  OnlineSoftmax<double> online(1);
  double before = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const json& tile = values["tiles"][i];
    for (std::size_t k = 2 * i; k < 2 * i + 2; ++k) {
      EXPECT_EQ(tile["scores"][k - 2 * i], scores()[k]);
      const double value = static_cast<double>(k + 1);
      online.add(scores()[k], {&value, 1});
    }
    const double largest = *std::max_element(
        scores().begin(), scores().begin() + static_cast<std::ptrdiff_t>(2 * i + 2));
    const SoftmaxRow so_far = row_of(0, 2 * i + 2);
    EXPECT_EQ(tile["largest"], largest);
    EXPECT_NEAR(tile["sum"], so_far.sum * std::exp(-largest), 1e-14);
    EXPECT_NEAR(tile["mean"], so_far.out, 1e-14);
    EXPECT_NEAR(tile["sum"], online.sum, 1e-14);
    EXPECT_NEAR(tile["out"], online.out[0], 1e-14);
    EXPECT_NEAR(tile["factor"], i == 0 ? 0 : std::exp(before - largest), 1e-15);
    before = largest;
  }
  // The lesson says that the factor is 1 where m stays; both cases occur.
  EXPECT_EQ(values["tiles"][1]["factor"], 1);
  EXPECT_LT(values["tiles"][2]["factor"], 1);
  EXPECT_THAT(text, HasSubstr("     2  5, 4      5   0.1353   1.5781   7.6726   4.8620\n"));
}

TEST_F(FlashAttentionLesson, AtTheEndItIsSoftmaxAtOnceInEitherOrder) {
  const SoftmaxRow all = row_of(0, 8);
  EXPECT_NEAR(values["whole_out"], all.out, 1e-14);
  EXPECT_NEAR(values["whole_lse"], std::log(all.sum), 1e-14);
  for (const char* difference : {"by_tiles", "in_reverse", "of_heed"}) {
    EXPECT_LT(values["differences"][difference], 1e-14) << difference;
  }
  EXPECT_THAT(text, HasSubstr("    out = o / l = 4.9611      lse = m + log l = 5.4888\n"));
}

TEST_F(FlashAttentionLesson, PartsAreWeighedByTheirSums) {
  const json& parts = values["parts"];
  const std::vector<SoftmaxRow> expected{row_of(0, 5), row_of(5, 8)};
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(parts["rows"][i]["out"], expected[i].out, 1e-14);
    EXPECT_NEAR(parts["rows"][i]["lse"], std::log(expected[i].sum), 1e-14);
    EXPECT_EQ(parts["rows"][i]["lse"], values["part_lse"][i]);
    EXPECT_NEAR(parts["rows"][i]["weight"], expected[i].sum / row_of(0, 8).sum, 1e-14);
  }
  EXPECT_NEAR(parts["out"], row_of(0, 8).out, 1e-13);
  EXPECT_NEAR(parts["lse"], std::log(row_of(0, 8).sum), 1e-14);
  for (const char* difference : {"by_hand", "merge", "swapped"}) {
    EXPECT_LT(parts[difference], 1e-13) << difference;
  }
}

TEST_F(FlashAttentionLesson, OnlyTheShiftedSumIsFiniteForAnyScores) {
  const json& shifts = values["shifts"];
  ASSERT_EQ(shifts.size(), 4U);
  for (const json& row : shifts) {
    EXPECT_EQ(row["stable_sum"], shifts[0]["stable_sum"]);
    EXPECT_EQ(row["stable_out"], shifts[0]["stable_out"]);
    EXPECT_GE(row["stable_sum"], 1);
    EXPECT_NEAR(row["stable_out"], row_of(0, 8).out, 1e-5);
    EXPECT_NEAR(row["heed"], row_of(0, 8).out, 1e-5);
  }
  EXPECT_NEAR(shifts[1]["plain_out"], row_of(0, 8).out, 1e-4);
  EXPECT_EQ(shifts[2]["plain_sum"], "inf");
  EXPECT_EQ(shifts[2]["plain_out"], "nan");
  EXPECT_EQ(shifts[3]["plain_sum"], 0);
  EXPECT_EQ(shifts[3]["plain_out"], "nan");
}

TEST_F(FlashAttentionLesson, TheWorkspaceGrowsAtMostWithTheLength) {
  const ThreadLimit one_thread(1);
  const json& memory = values["memory"];
  ASSERT_EQ(memory.size(), 5U);
  std::int64_t length = 256;
  for (const json& row : memory) {
    const AttentionPlan planned =
        plan({.q_len = length, .kv_len = length, .head_dim = 64, .value_dim = 64});
    EXPECT_EQ(row["length"], length);
    EXPECT_EQ(row["matrices"], 8 * length * length);
    EXPECT_EQ(row["arguments"], 4 * 4 * 64 * length);
    EXPECT_EQ(row["forward"], planned.workspace_bytes());
    EXPECT_EQ(row["backward"], planned.backward_workspace_bytes());
    EXPECT_LE(row["backward"],
              length * values["memory_growth"]["backward_per_token"].get<std::int64_t>());
    length *= 4;
  }
  EXPECT_EQ(values["memory_growth"]["matrices"], 16);
  EXPECT_LE(values["memory_growth"]["forward"], 1.001);
  EXPECT_LE(values["memory_growth"]["backward"], 4.001);
}

TEST_F(FlashAttentionLesson, TheWorkspaceIsEnough) {
  const ThreadLimit one_thread(1);
  const auto planned = plan({.q_len = 300, .kv_len = 300, .head_dim = 64, .value_dim = 64});
  TorchGenerator generator(0);
  const auto query = generator.randn({1, 1, 300, 64});
  const auto key = generator.randn({1, 1, 300, 64});
  const auto value = generator.randn({1, 1, 300, 64});
  std::vector<std::byte> workspace(planned.workspace_bytes());
  Tensor<float> out(query.shape());
  planned.run_into({.out = out, .workspace = workspace}, query, key, value);
  const auto expected = attention(query, key, value);
  EXPECT_THAT(out.elements(), testing::ElementsAreArray(expected.elements()));
}

TEST_F(FlashAttentionLesson, LseAndItsErrorAreAllThatIsKept) {
  const json& growth = values["memory_growth"];
  EXPECT_EQ(growth["kept_weights"], 4LL * 65536 * 65536);
  TorchGenerator generator(0);
  const auto x = generator.randn({1, 1, 32, 8});
  const auto forward = attention_with_lse(x, x, x);
  EXPECT_EQ(forward.lse.num_elements() + forward.lse_low.num_elements(), 2 * 32);
  EXPECT_EQ(growth["kept_lse"], 2 * 4 * 65536);
}

std::int64_t in_tiles(std::int64_t length, std::int64_t dim, std::int64_t cache) {
  const std::int64_t keys = (cache + 4 * dim - 1) / (4 * dim);
  const std::int64_t tiles = (length + keys - 1) / keys;
  return length * (dim + 2) + 2 * length * dim + tiles * length * (3 * dim + 4);
}

void expect_traffic(const json& values, std::int64_t cache) {
  constexpr std::int64_t kLengths[] = {1024, 4096, 16384};
  for (const json& row : values["traffic_" + std::to_string(cache)]) {
    const std::int64_t dim = row["dim"];
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t n = kLengths[i];
      const double times = static_cast<double>(4 * n * dim + 4 * n * n) /
                           static_cast<double>(in_tiles(n, dim, cache));
      EXPECT_DOUBLE_EQ(row["times"][i], times);
      // The lesson says: "Where d² is beyond M / 3 … they take more."
      EXPECT_EQ(times<1, 3 * dim * dim> cache) << dim << " " << n;
    }
    EXPECT_EQ(row["matrices"], 4 * 16384 * dim + 4LL * 16384 * 16384);
    EXPECT_EQ(row["tiles"], in_tiles(16384, dim, cache));
    const double growth = row["times"][2].get<double>() / row["times"][1].get<double>();
    EXPECT_LE(std::abs(growth - 1), values["traffic_change"]) << dim;
  }
}

TEST_F(FlashAttentionLesson, TilesSaveTrafficWhereTheCacheHoldsEnoughKeys) {
  ASSERT_EQ(values["traffic_262144"].size(), 5U);
  ASSERT_EQ(values["traffic_8192"].size(), 4U);
  expect_traffic(values, 262144);
  expect_traffic(values, 8192);
  EXPECT_LT(values["traffic_change"], 0.2);
  for (const char* table : {"traffic_262144", "traffic_8192"}) {
    for (std::size_t i = 1; i < values[table].size(); ++i) {
      EXPECT_LT(values[table][i]["times"][2], values[table][i - 1]["times"][2]);
    }
  }
}

TEST_F(FlashAttentionLesson, HeedReadsAllKeysOnceForEachBlockOfQueries) {
  const ThreadLimit one_thread(1);
  const auto planned = plan({.q_len = 16384, .kv_len = 16384, .head_dim = 64, .value_dim = 64});
  const json& heed = values["traffic_of_heed"];
  const std::int64_t rows = std::max<std::int64_t>(1, planned.tiles().rows_together);
  EXPECT_EQ(heed["rows"], rows);
  std::int64_t numbers = 2 * 16384 * 64;  // queries and output
  for (std::int64_t first = 0; first < 16384; first += rows) numbers += 2 * 16384 * 64;
  EXPECT_EQ(heed["numbers"], numbers);
  EXPECT_DOUBLE_EQ(heed["times"], static_cast<double>(4 * 16384 * 64 + 4LL * 16384 * 16384) /
                                      static_cast<double>(numbers));
}

TEST_F(FlashAttentionLesson, GradientsInTilesAreThoseOfStoredWeights) {
  ASSERT_EQ(values["gradients"].size(), 3U);
  for (const json& row : values["gradients"]) {
    EXPECT_GT(row["largest"], 0.5) << row;
    EXPECT_LT(row["by_hand"], 1e-13) << row;
    EXPECT_LT(row["heed"], 1e-13) << row;
    EXPECT_LT(row["heed_float"], 1e-5) << row;
  }
}

TEST_F(FlashAttentionLesson, TheMeanOfARowIsThatOfItsOutput) {
  const json& backward = values["backward"];
  ASSERT_EQ(values["row_means"].size(), 70U);
  for (std::size_t q = 0; q < 70; ++q) {
    EXPECT_NEAR(values["row_means"][q], values["row_means_of_weights"][q], 1e-13);
  }
  EXPECT_GT(std::abs(values["row_means"][0].get<double>()), 0.1);
  EXPECT_LT(backward["difference_of_means"], 1e-13);
  EXPECT_EQ(backward["multiply_adds_stored"], 4 * 70 * 70 * 16);
  EXPECT_EQ(backward["multiply_adds_tiles"], 5 * 70 * 70 * 16);
  EXPECT_EQ(backward["stored_weights"], 70 * 70);
  EXPECT_EQ(backward["stored_tiles"], 2 * 70);
}

// Counts the tiles of a matrix that some query sees, and among them those that some query does not
// see completely, by their corners. A query sees `left` keys before its own.
struct Counted {
  std::int64_t visited = 0;
  std::int64_t mixed = 0;
};
Counted count_tiles(std::int64_t length, std::int64_t rows, std::int64_t keys, std::int64_t left) {
  Counted counted;
  for (std::int64_t q = 0; q < length; q += rows) {
    const std::int64_t last_q = std::min(q + rows, length) - 1;
    for (std::int64_t k = 0; k < length; k += keys) {
      const std::int64_t last_k = std::min(k + keys, length) - 1;
      const bool is_visited = k <= last_q && last_k >= q - left;
      const bool is_whole = last_k <= q && k >= last_q - left;
      counted.visited += is_visited ? 1 : 0;
      counted.mixed += is_visited && !is_whole ? 1 : 0;
    }
  }
  return counted;
}

TEST_F(FlashAttentionLesson, TilesAboveTheDiagonalAreNotVisited) {
  if (attention_target() == "reference") GTEST_SKIP() << "has no tiles";
  const std::int64_t rows = values["causal"]["panel_rows"];
  const std::int64_t keys = values["causal"]["tile_keys"];
  ASSERT_GT(rows * keys, 0);
  const json& lengths = values["causal"]["rows"];
  ASSERT_EQ(lengths.size(), 5U);
  for (const json& row : lengths) {
    const std::int64_t length = row["length"];
    const Counted counted = count_tiles(length, rows, keys, length);
    EXPECT_EQ(row["total"], ((length + rows - 1) / rows) * ((length + keys - 1) / keys));
    EXPECT_EQ(row["visited"], counted.visited) << length;
    EXPECT_EQ(row["mixed"], counted.mixed) << length;
    EXPECT_EQ(row["pairs"], length * (length + 1) / 2);
    EXPECT_EQ(row["window"], count_tiles(length, rows, keys, 255).visited) << length;
  }
}

TEST_F(FlashAttentionLesson, VisitedTilesApproachHalfAndTheDiagonalGrowsWithTheLength) {
  if (attention_target() == "reference") GTEST_SKIP() << "has no tiles";
  const json& rows = values["causal"]["rows"];
  double before = 1;
  for (const json& row : rows) {
    const double share = row["visited"].get<double>() / row["total"].get<double>();
    EXPECT_GT(share, 0.5);
    EXPECT_LT(share, before);
    before = share;
  }
  EXPECT_LT(before, 0.51);
  for (const char* linear : {"mixed", "window"}) {
    EXPECT_NEAR(rows[4][linear].get<double>() / rows[3][linear].get<double>(), 4, 0.1) << linear;
  }
}

// NaN in tiles that no query sees does not affect the output.
TEST_F(FlashAttentionLesson, KeysThatNoQuerySeesChangeNoBit) {
  TorchGenerator generator(0);
  const auto query = generator.randn({1, 1, 256, 16});
  auto key = generator.randn({1, 1, 512, 16});
  const auto value = generator.randn({1, 1, 512, 16});
  const AttentionOptions options{.mask = causal(Alignment::top_left())};
  const auto before = attention(query, key, value, options);
  for_each_element(key.view().slice(2, 256, 512), [](float& number) { number = NAN; });
  const auto after = attention(query, key, value, options);
  EXPECT_THAT(after.elements(), testing::ElementsAreArray(before.elements()));
}

}  // namespace
}  // namespace heed
