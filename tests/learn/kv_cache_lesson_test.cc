// The lesson on caches of keys and values: recomputes the counts by formulas, compares bits, and
// checks that the text reports the measured times.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/attention.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "support/command.h"

namespace heed { namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;

// The text and the numbers of one run, because a second run would measure other times.
class KvCacheLesson : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const TemporaryFolder folder;
    const auto result = run_command({"lesson", "kv-cache", "--out", folder / "lesson.json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    text = result.out;
    values = json::parse(read_text(folder / "lesson.json"));
  }

  static std::vector<std::int64_t> column(const char* table, const char* name) {
    std::vector<std::int64_t> numbers;
    for (const json& row : values[table]) numbers.push_back(row[name]);
    return numbers;
  }

  inline static std::string text;
  inline static json values;
};

TEST_F(KvCacheLesson, CountsTheBytesOfModels) {
  ASSERT_EQ(values["models"].size(), 4U);
  for (const json& row : values["models"]) {
    const std::int64_t per_token = 2 * row["num_layers"].get<std::int64_t>() *
                                   row["num_kv_heads"].get<std::int64_t>() *
                                   row["head_dim"].get<std::int64_t>() * 2;
    EXPECT_EQ(row["bytes_per_token"], per_token) << row;
    EXPECT_EQ(row["bytes"], per_token * row["context"].get<std::int64_t>()) << row;
  }
  EXPECT_THAT(column("models", "bytes_per_token"),
              ElementsAre(36'864, 4'718'592, 524'288, 131'072));
  EXPECT_THAT(text, HasSubstr("Llama 2 7B      32        32      128         524,288    4,096"));
}

TEST_F(KvCacheLesson, StepsGiveWhatTheWholeLayerGives) {
  TorchGenerator generator(0);
  const auto x = generator.randn({1, 6, 16});
  const auto layer = attention_init(generator, 16, 16);
  const auto whole =
      attention(split_heads(linear(x, layer.query), 2), split_heads(linear(x, layer.key), 2),
                split_heads(linear(x, layer.value), 2), {.mask = causal()});
  const auto out = values["out"][0].get<std::vector<std::vector<std::vector<float>>>>();
  ASSERT_EQ(out.size(), 2U);
  for (const std::int64_t head : {0, 1}) {
    for (std::int64_t t = 0; t < 6; ++t) {
      const float* row = &whole(0, head, t, 0);
      EXPECT_THAT(out[static_cast<std::size_t>(head)][static_cast<std::size_t>(t)],
                  Pointwise(FloatNear(1e-5F), std::vector<float>(row, row + 8)));
    }
  }
  EXPECT_THAT(column("steps", "keys_read"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(column("steps", "numbers_kept"), ElementsAre(32, 64, 96, 128, 160, 192));
  EXPECT_LT(values["projection_difference"], 1e-5);
  EXPECT_EQ(values["rows_copied_by_concatenation"], 499'500);
}

TEST_F(KvCacheLesson, BitsAreThoseOfOneAttention) {
  EXPECT_EQ(values["steps_differing"], 0);
  EXPECT_THAT(column("divisions", "differing"), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(column("divisions", "compared"), ElementsAre(12800, 12800, 12800, 12800, 12800));
  EXPECT_EQ(values["forks_differing"], 0);
  EXPECT_EQ(values["bounds_differing"], 0);
  EXPECT_THAT(text, HasSubstr("0 of 96 numbers differ"));
  EXPECT_THAT(text, HasSubstr("0 of 18,432 numbers differ"));
}

TEST_F(KvCacheLesson, CountsOperationsPairsAndBytes) {
  EXPECT_THAT(column("operations", "n"), ElementsAre(1, 4, 16, 64, 256, 1024, 4096, 10'000));
  for (const json& row : values["operations"]) {
    const auto n = row["n"].get<std::int64_t>();
    EXPECT_EQ(row["without"], 4 * n * 256 * 256 + n * (n + 1) * 256);
    EXPECT_EQ(row["with"], 4 * 256 * 256 + 2 * n * 256);
  }
  for (const json& row : values["pairs"]) {
    const auto n = row["n"].get<std::int64_t>();
    EXPECT_EQ(row["pairs_without"], n * (n + 1) / 2);
    EXPECT_EQ(row["pairs_with"], n);
    EXPECT_EQ(row["bytes_written_without"], 2 * 256 * 4 * n);
    EXPECT_EQ(row["bytes_written_with"], 2 * 256 * 4);
    EXPECT_EQ(row["bytes_kept"], 2 * 256 * 4 * n);
  }
  // Σ n = N (N + 1) / 2, Σ n² = N (N + 1) (2 N + 1) / 6.
  const std::int64_t sum = 1024LL * 1025 / 2;
  const std::int64_t squares = 1024LL * 1025 * 2049 / 6;
  EXPECT_EQ(values["text_operations"]["without"], 4 * 256 * 256 * sum + 256 * (squares + sum));
  EXPECT_EQ(values["text_operations"]["with"], values["operations"][5]["without"]);
  EXPECT_THAT(text, HasSubstr("takes 229,467,750,400 operations"));
  EXPECT_THAT(text, HasSubstr("  10000  50,005,000  10,000 "));
}

TEST_F(KvCacheLesson, ReportsTheTimesThatItMeasured) {
  const json& times = values["times"];
  EXPECT_THAT(column("times", "n"), ElementsAre(64, 128, 256, 512, 1024));
  for (const json& row : times) {
    EXPECT_GT(row["without_milliseconds"], 0);
    EXPECT_GT(row["with_milliseconds"], 0);
    EXPECT_LT(row["difference"], 1e-5);
    EXPECT_THAT(text, HasSubstr(fmt::format("{:.3f} ms {:>11.3f} ms",
                                            row["without_milliseconds"].get<double>(),
                                            row["with_milliseconds"].get<double>())));
  }
  const auto growth = [&](const char* name) {
    return times[4][name].get<double>() / times[0][name].get<double>();
  };
  EXPECT_THAT(text, HasSubstr(fmt::format("grew {:.1f} times", growth("without_milliseconds"))));
  EXPECT_THAT(text, Not(HasSubstr("should")));
}

TEST_F(KvCacheLesson, MeasuresTheErrorsOfStorages) {
  const json& rows = values["storages"];
  EXPECT_THAT(column("storages", "bytes_per_token"),
              ElementsAre(262'144, 131'072, 131'072, 67'584, 40'960));
  EXPECT_EQ(rows[0]["error_of_a_number"], 0);
  EXPECT_EQ(rows[0]["error_of_a_result"], 0);
  // The table of docs/kv-cache.md.
  const std::vector<std::pair<double, double>> expected{
      {0.00021, 0.00004}, {0.0017, 0.0004}, {0.0065, 0.0014}, {0.097, 0.021}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto [number, result] = expected[i];
    EXPECT_NEAR(rows[i + 1]["error_of_a_number"].get<double>() / number, 1, 0.05) << rows[i + 1];
    EXPECT_NEAR(rows[i + 1]["error_of_a_result"].get<double>() / result, 1, 0.2) << rows[i + 1];
  }
}

TEST_F(KvCacheLesson, ForksSharePagesUntilTheyWrite) {
  EXPECT_THAT(column("forks", "length"), ElementsAre(40, 40, 20, 41, 21, 48, 10));
  EXPECT_THAT(column("forks", "pages"), ElementsAre(3, 3, 2, 3, 2, 3, 1));
  EXPECT_THAT(column("forks", "pages_in_use"), ElementsAre(3, 3, 3, 4, 5, 5, 4));
}

TEST_F(KvCacheLesson, ABoundedSequenceStopsGrowing) {
  EXPECT_THAT(column("bounds", "length"), ElementsAre(16, 64, 256, 1024));
  EXPECT_THAT(column("bounds", "unbounded_pages"), ElementsAre(1, 4, 16, 64));
  // At most ⌈4 / 16⌉ + ⌈(32 + 1 − 2) / 16⌉ + 1.
  EXPECT_THAT(column("bounds", "bounded_pages"), testing::Each(testing::Le(4)));
  EXPECT_EQ(column("bounds", "bounded_pages")[3], column("bounds", "bounded_pages")[1]);
  EXPECT_LE(values["most_bounded_pages"], 4);
  EXPECT_GT(values["bounds_change"], 0.1);
  EXPECT_THAT(text, HasSubstr("    #.####....\n    #..####...\n"));
}

}  // namespace
}  // namespace heed
