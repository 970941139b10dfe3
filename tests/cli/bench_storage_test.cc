// heed bench storage: the error of a trained model with keys and values in fewer bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/command.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::run_command;
using Arguments = std::vector<std::string>;

class BenchStorage : public testing::Test {
 protected:
  // Trains a model of one layer for some steps; returns the JSON that training prints.
  nlohmann::json train() const {
    const auto result =
        run_command({"train", "lm", "--steps", "30", "--batch", "4", "--layers", "1", "--d-model",
                     "32", "--heads", "2", "--context", "32", "--save", model(), "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  }

  std::string model() const { return folder_ / "model"; }

  static void expect_error(int exit_code, const Arguments& options, const std::string& text) {
    Arguments arguments{"bench", "storage"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto result = run_command(arguments);
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(HasSubstr("heed bench storage: "), HasSubstr(text)));
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(BenchStorage, ComparesEachStorageWithFloat32) {
  const auto trained = train();
  const auto result = run_command({"bench", "storage", "--model", model(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  const auto& held_out = trained.at("held_out").at(0);
  EXPECT_EQ(json.at("sequences"), held_out.at("sequences"));
  EXPECT_EQ(json.at("head_dim"), 16);
  const double loss = held_out.at("loss");
  // The allowed relative errors of a storage, of its numbers and of the output.
  struct Bounds {
    double least, most;
  };
  const std::map<std::string, Bounds> bounds{{"float32", {0, 0}},
                                             {"float16", {5e-5, 1e-3}},
                                             {"bfloat16", {5e-4, 6e-3}},
                                             {"int8", {1e-3, 2e-2}},
                                             {"int4", {2e-2, 4e-1}}};
  ASSERT_EQ(json.at("results").size(), 2 * bounds.size());
  int index = 0;
  for (const auto& layer : json.at("results")) {
    const auto [least, most] = bounds.at(layer.at("case").at("storage"));
    EXPECT_EQ(layer.at("case").at("layer"), index++ % 2 == 0 ? "0" : "normal");
    for (const char* name : {"key", "value", "out", "largest"}) {
      EXPECT_GE(layer.at(name).get<double>(), least) << layer;
      EXPECT_LE(layer.at(name).get<double>(), most) << layer;
    }
    EXPECT_NEAR(layer.at("loss").get<double>(), loss, 1e-6 + most / 4) << layer;
  }
}

TEST_F(BenchStorage, PrintsATable) {
  train();
  std::ofstream(folder_ / "text") << "The lamp was lit, and the sea was still.";
  const auto result =
      run_command({"bench", "storage", "--model", model(), "--text", folder_ / "text"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("1 sequence of 32 characters, 2 heads of 16\n"), HasSubstr("normal"),
                    HasSubstr(" storage   layer"), HasSubstr("    int4       0")));
}

TEST_F(BenchStorage, NamesWhatIsWrong) {
  train();
  std::ofstream(folder_ / "short") << "The lamp";
  expect_error(2, {}, "--model is required");
  expect_error(1, {"--model", folder_ / "none"}, "No such file");
  expect_error(1, {"--model", model(), "--text", folder_ / "short"},
               "the text has 8 characters, expected at least 33");
}

}  // namespace
}  // namespace heed
