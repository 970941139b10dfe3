// The lesson on heads of a trained model: on small models with random weights, and on MiniLM where
// `make models` has fetched it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/inspect/model_reading.h"
#include "heed/models/model.h"
#include "support/command.h"
#include "support/places.h"
#include "support/tiny_model.h"

namespace heed { namespace {

using models::Family;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;
using testing_support::TinyModel;

struct Lecture {
  std::string text;
  json values;
};

Lecture lecture_on(const std::string& model) {
  const TemporaryFolder folder;
  const CommandResult result =
      run_command({"lesson", "real-heads", "--model", model, "--out", folder / "lesson.json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return {result.out, json::parse(read_text(folder / "lesson.json"))};
}

// Returns the object of a list in which `member` is `value`.
json row_where(const json& rows, const char* member, const std::string& value) {
  for (const json& row : rows) {
    if (row[member] == value) return row;
  }
  ADD_FAILURE() << "no row where " << member << " is " << value;
  return {};
}

std::vector<std::string> strings_of(const json& rows, const char* member) {
  std::vector<std::string> all;
  for (const json& row : rows) all.push_back(row[member]);
  return all;
}

void expect_what_holds_for_every_model(const Lecture& lecture) {
  const json& values = lecture.values;
  const auto weights = values["weights"].get<std::vector<std::vector<double>>>();
  ASSERT_EQ(weights.size(), values["tokens"].size());
  double before = 0;
  for (std::size_t q = 0; q < weights.size(); ++q) {
    double sum = 0;
    for (const double weight : weights[q]) sum += weight;
    EXPECT_NEAR(sum, 1, 1e-5);
    if (q > 0) before += weights[q][q - 1];
  }
  EXPECT_NEAR(values["score_by_hand"].get<double>(),
              before / static_cast<double>(weights.size() - 1), 1e-6);
  EXPECT_LT(values["weights_difference"], 1e-5);
  const auto layers = values["num_layers"].get<std::size_t>();
  const auto heads = values["num_heads"].get<std::size_t>();
  ASSERT_EQ(values["entropies"].size(), layers);
  for (const json& layer : values["entropies"]) {
    EXPECT_EQ(layer.size(), heads);
    for (const double entropy : layer) EXPECT_TRUE(entropy >= 0 && entropy <= 1 + 1e-6) << entropy;
  }
  EXPECT_EQ(values["changes"].size(), layers * heads);
  EXPECT_EQ(values["chance_of_100"], 0.01);
}

// Expects each row of the table of switched-off heads to agree with the others and with the list of
// all heads.
void expect_consistent_changes(const json& values) {
  auto changes = values["changes"].get<std::vector<double>>();
  std::sort(changes.begin(), changes.end(), std::greater<>());
  EXPECT_EQ(values["switched_off"][0]["change"], 0.0);
  for (const json& row : values["switched_off"]) {
    const auto change = row["change"].get<double>();
    if (row["heads"] != 1) continue;
    const auto rank = row["rank"].get<std::size_t>();
    EXPECT_NEAR(changes[rank - 1], change, 1e-9) << row;
    EXPECT_GT(change, 0) << row;
  }
  const json all = row_where(values["switched_off"], "off", "all heads");
  EXPECT_EQ(all["heads"].get<std::size_t>(), changes.size());
  EXPECT_GT(all["change"].get<double>(), changes.front());
}

TEST(RealHeadsLesson, SaysHowToGetAModelWhereThereIsNone) {
  const CommandResult result = run_command({"lesson", "real-heads", "--model", "/nowhere/model"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("there is no model at '/nowhere/model': `make models` fetches "
                                    "one to build/models/all-MiniLM-L6-v2, --model names another"));
  const TemporaryFolder folder;
  const CommandResult empty = run_command({"lesson", "real-heads", "--model", folder / ""});
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_THAT(empty.err, HasSubstr("this is a folder without config.json"));
}

TEST(RealHeadsLesson, OtherLessonsLookAtNoModel) {
  const CommandResult result = run_command({"lesson", "softmax", "--model", "/nowhere"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("--model: the lesson softmax looks at no model"));
  EXPECT_EQ(run_command({"lesson", "--model", "/nowhere"}).exit_code, 2);
}

TEST(RealHeadsLesson, ReadsASmallEncoder) {
  const TinyModel files(Family::kBert);
  const Lecture lecture = lecture_on(files.folder().string());
  expect_what_holds_for_every_model(lecture);
  expect_consistent_changes(lecture.values);
  EXPECT_THAT(strings_of(lecture.values["patterns"], "pattern"),
              AllOf(testing::Contains("next token"), Not(testing::Contains("induction"))));
  // Random weights follow no pattern.
  EXPECT_EQ(row_where(lecture.values["patterns"], "pattern", "previous token")["named"], 0);
}

TEST(RealHeadsLesson, ReadsASmallDecoder) {
  const TinyModel files(Family::kLlama);
  const Lecture lecture = lecture_on(files.folder().string());
  expect_what_holds_for_every_model(lecture);
  expect_consistent_changes(lecture.values);
  // A causal model sees no next token, so no row is scored.
  EXPECT_THAT(strings_of(lecture.values["patterns"], "pattern"),
              AllOf(testing::Contains("induction"), Not(testing::Contains("next token"))));
}

TEST(RealHeadsLesson, ShowsTheWeightsThatTheModelHas) {
  const TinyModel files(Family::kBert);
  const json values = lecture_on(files.folder().string()).values;
  const inspect::ModelReading reading =
      inspect::read_layers(models::load(files.folder()), "The cat sat on the mat.");
  const std::string head = values["weights_head"];
  const Tensor<float>& weights = reading.layers[static_cast<std::size_t>(head[0] - '0')].weights;
  const auto shown = values["weights"].get<std::vector<std::vector<float>>>();
  for (std::size_t q = 0; q < shown.size(); ++q) {
    for (std::size_t k = 0; k < shown.size(); ++k) {
      EXPECT_EQ(shown[q][k],
                weights(head[2] - '0', static_cast<std::int64_t>(q), static_cast<std::int64_t>(k)));
    }
  }
}

TEST(RealHeadsLesson, DrawsAHeadForEachPattern) {
  const TinyModel files(Family::kBert);
  const TemporaryFolder folder;
  const std::string page = folder / "heads.html";
  const CommandResult result = run_command(
      {"lesson", "real-heads", "--model", files.folder().string(), "--json", "--out", page});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json values = json::parse(result.out);
  for (const char* name : {"previous token", "next token", "first token", "duplicate token"}) {
    const json row = row_where(values["patterns"], "pattern", name);
    EXPECT_THAT(read_text(page),
                HasSubstr(std::string(name) + ": " + row["head"].get<std::string>() + " scores "));
  }
}

// Returns the folder of MiniLM, from HEED_MODELS or as `make models` places it.
std::filesystem::path mini_lm() {
  const char* folder = std::getenv("HEED_MODELS");
  const std::filesystem::path models =
      folder != nullptr ? std::filesystem::path(folder)
                        : std::filesystem::path(testing_support::source_folder()) / "build/models";
  return models / "all-MiniLM-L6-v2";
}

TEST(RealHeadsLesson, NamesTheHeadsOfMiniLm) {
  if (!std::filesystem::exists(mini_lm())) GTEST_SKIP() << "`make models` has not been run";
  const Lecture lecture = lecture_on(mini_lm().string());
  const json& values = lecture.values;
  expect_what_holds_for_every_model(lecture);
  expect_consistent_changes(values);
  EXPECT_EQ(values["tokens"],
            json({"[CLS]", "the", "cat", "sat", "on", "the", "mat", ".", "[SEP]"}));
  EXPECT_EQ(values["num_layers"], 6);
  EXPECT_EQ(values["num_heads"], 12);
  const json& patterns = values["patterns"];
  for (const auto& [name, head] : {std::pair{"previous token", "0.2"},
                                   {"next token", "1.8"},
                                   {"first token", "1.11"},
                                   {"duplicate token", "2.9"}}) {
    EXPECT_EQ(row_where(patterns, "pattern", name)["head"], head) << name;
    EXPECT_THAT(lecture.text, HasSubstr(fmt::format("{:<5} {}", head, name)));
  }
  EXPECT_GT(row_where(patterns, "pattern", "previous token")["score"], 0.6);
  EXPECT_EQ(row_where(patterns, "pattern", "separators")["named"], 0);
  const json& off = values["switched_off"];
  const auto similarity = [](const json& row, std::size_t i) {
    return row["similarities"][i].get<double>();
  };
  EXPECT_GT(similarity(off[0], 1), similarity(off[0], 0));
  EXPECT_LT(similarity(off[0], 2), 0.2);
  EXPECT_GT(similarity(row_where(off, "off", "all heads"), 1), 0.99);
  // The head that attends to [CLS] gets a small value from it: its weight means that it attends to
  // nothing.
  const json& first = values["first_token"];
  EXPECT_GT(first["weight"], 0.6);
  EXPECT_LT(first["first_norm"].get<double>(), 0.2 * first["other_norm"].get<double>());
  EXPECT_LT(first["share"], 0.2);
  EXPECT_THAT(lecture.text, HasSubstr("value is shorter than the others'"));
}

}  // namespace
}  // namespace heed
