// heed bench model, on small models with random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/peak_memory.h"
#include "heed/models/model.h"
#include "support/command.h"
#include "support/tiny_model.h"

namespace heed { namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::CommandResult;
using testing_support::run_command;
using testing_support::TinyModel;

using Arguments = std::vector<std::string>;
using Ids = std::vector<std::int64_t>;

CommandResult bench_model(const std::string& model, const Arguments& options) {
  Arguments all{"bench", "model", "--model", model, "--runs", "2"};
  all.insert(all.end(), options.begin(), options.end());
  return run_command(all);
}

nlohmann::json measured(const std::string& model, Arguments options) {
  options.emplace_back("--json");
  const CommandResult result = bench_model(model, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}

void expect_refused_bench(const std::string& model, const Arguments& options, int code,
                          const std::string& text) {
  const CommandResult result = bench_model(model, options);
  EXPECT_EQ(result.exit_code, code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(HasSubstr("heed bench model: "), HasSubstr(text)));
}

// Returns "work past threads" of each result.
Arguments cases_of(const nlohmann::json& report) {
  Arguments cases;
  for (const auto& result : report.at("results")) {
    const auto& one = result.at("case");
    cases.push_back(one.at("work").get<std::string>() + ' ' + one.at("past").dump() + ' ' +
                    one.at("threads").dump());
  }
  return cases;
}

// Returns the most likely tokens after `ids`, each computed by reading everything again.
Ids likeliest_tokens(const models::Model& model, Ids ids, std::size_t count) {
  Ids found;
  while (found.size() < count) {
    const Tensor<float> hidden = model.forward(models::Inputs::of(ids));
    const std::int64_t rows = hidden.extent(0);
    const Tensor<float> logits = model.logits(hidden.view().slice(0, rows - 1, rows));
    const auto elements = logits.elements();
    found.push_back(std::max_element(elements.begin(), elements.end()) - elements.begin());
    ids.push_back(found.back());
  }
  return found;
}

TEST(BenchModel, TimesAModelThatReadsAndWrites) {
  const TinyModel llama(models::Family::kLlama);
  const std::string path = llama.folder();
  const auto report =
      measured(path, {"--prompt", "8", "--past", "19,5,19", "--tokens", "3", "--threads", "1,2"});
  EXPECT_THAT(cases_of(report), ElementsAre("start 0 1", "read 0 1", "start 0 2", "read 0 2",
                                            "write 5 1", "write 5 2", "write 19 1", "write 19 2"));
  for (const auto& result : report.at("results")) {
    const auto& one = result.at("case");
    const bool is_start = one.at("work") == "start";
    EXPECT_EQ(one.at("tokens"), one.at("work") == "write" ? 3 : 8);
    EXPECT_EQ(result.contains("tokens_per_second"), !is_start);
    EXPECT_GT(result.at("best_ms"), 0);
    EXPECT_LE(result.at("best_ms"), result.at("median_ms"));
    EXPECT_EQ(result.at("repetitions"), 2);
    if (is_start) continue;
    const double seconds = result.at("median_ms").get<double>() / 1e3;
    const double rate = result.at("tokens_per_second");
    EXPECT_NEAR(rate * seconds, one.at("tokens").get<double>(), 1e-9);
  }
  const models::Model model = models::load(path);
  EXPECT_EQ(report.at("model").at("architecture"), "LlamaForCausalLM");
  EXPECT_EQ(report.at("model").at("parameters"), model.num_parameters());
  EXPECT_EQ(report.at("model").at("bytes"), model.num_bytes());
  EXPECT_GT(report.at("peak_bytes").get<std::int64_t>(), model.num_bytes());
}

// The same tokens after a past that was read in pieces, with one and several threads.
TEST(BenchModel, WritesTheLikeliestTokens) {
  const TinyModel llama(models::Family::kLlama);
  const std::string path = llama.folder();
  const auto report =
      measured(path, {"--prompt", "8", "--past", "1,20", "--tokens", "4", "--threads", "2,1"});
  const Ids ids = report.at("ids");
  ASSERT_EQ(ids.size(), 20U);
  const models::Model model = models::load(path);
  ASSERT_EQ(report.at("written").size(), 2U);
  for (const auto& written : report.at("written")) {
    const Ids past(ids.begin(), ids.begin() + written.at("past").get<std::ptrdiff_t>());
    EXPECT_EQ(written.at("ids").get<Ids>(), likeliest_tokens(model, past, 4)) << past.size();
  }
}

TEST(BenchModel, TakesWhatFitsIntoTheModelsPositions) {
  const TinyModel gpt2(models::Family::kGpt2);
  const auto report = measured(gpt2.folder(), {"--threads", "1"});
  EXPECT_THAT(cases_of(report), ElementsAre("start 0 1", "read 0 1"));
  EXPECT_EQ(report.at("results").at(1).at("case").at("tokens"), 64);
  const auto longest = measured(gpt2.folder(), {"--past", "60", "--tokens", "4", "--threads", "1"});
  EXPECT_THAT(cases_of(longest), ElementsAre("start 0 1", "read 0 1", "write 60 1"));
}

TEST(BenchModel, TimesTheVectorsOfABert) {
  const TinyModel bert(models::Family::kBert);
  const auto report = measured(bert.folder(), {"--threads", "1"});
  const Arguments sentences = report.at("sentences");
  ASSERT_EQ(sentences.size(), 64U);
  const models::Model model = models::load(bert.folder());
  std::size_t tokens = 0;
  std::size_t fewest = 100;
  std::size_t most = 0;
  for (const std::string& sentence : sentences) {
    std::istringstream stream(sentence);
    std::size_t words = 0;
    for (std::string word; stream >> word;) ++words;
    fewest = std::min(fewest, words);
    most = std::max(most, words);
    tokens += std::min<std::size_t>(model.tokenizer().encode(sentence).ids.size(), 64);
  }
  EXPECT_EQ(fewest, 4U);
  EXPECT_EQ(most, 40U);
  ASSERT_EQ(report.at("results").size(), 2U);
  const auto& embed = report.at("results").at(1);
  EXPECT_EQ(embed.at("case").at("work"), "embed");
  EXPECT_EQ(embed.at("case").at("tokens"), tokens);
  const double seconds = embed.at("median_ms").get<double>() / 1e3;
  EXPECT_NEAR(embed.at("sentences_per_second").get<double>() * seconds, 64, 1e-9);
  EXPECT_NEAR(embed.at("tokens_per_second").get<double>() * seconds, static_cast<double>(tokens),
              1e-6);
}

TEST(BenchModel, PrintsATable) {
  const TinyModel llama(models::Family::kLlama);
  const CommandResult text = bench_model(
      llama.folder(), {"--prompt", "8", "--past", "5", "--tokens", "3", "--threads", "1"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("LlamaForCausalLM, 2 layers of 4 heads"), HasSubstr("tokens/s"),
                    HasSubstr("write"), HasSubstr("MB in memory")));
  const TinyModel bert(models::Family::kBert);
  const CommandResult vectors = bench_model(bert.folder(), {"--threads", "1"});
  ASSERT_EQ(vectors.exit_code, 0) << vectors.err;
  EXPECT_THAT(vectors.out, HasSubstr("sentences/s"));
}

TEST(BenchModel, RefusesMisuse) {
  const TinyModel llama(models::Family::kLlama);
  const TinyModel bert(models::Family::kBert);
  const std::string path = llama.folder();
  expect_refused_bench(path, {"--past", "5,61", "--tokens", "4"}, 2,
                       "--past is 61, with 4 tokens more than the model's 64 positions");
  expect_refused_bench(path, {"--prompt", "65"}, 2, "--prompt is 65, the model has 64 positions");
  expect_refused_bench(path, {"--prompt", "0"}, 2, "--prompt");
  expect_refused_bench(bert.folder(), {"--past", "5"}, 2, "--past goes with models that write");
  expect_refused_bench("/nowhere", {}, 1, "/nowhere");
  const CommandResult result = run_command({"bench", "model"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--model is required"));
}

// Not the peak of the program that started it.
TEST(BenchModel, TellsThePeakOfItsOwnProcess) {
  constexpr std::size_t kBytes = std::size_t{512} << 20;
  const std::vector<char> touched(kBytes, 'x');
  EXPECT_GT(cli::peak_process_bytes(), static_cast<std::int64_t>(kBytes));
  const TinyModel bert(models::Family::kBert);
  const auto report = measured(bert.folder(), {"--threads", "1"});
  EXPECT_LT(report.at("peak_bytes").get<std::size_t>(), kBytes);
  EXPECT_EQ(touched.back(), 'x');
}

}  // namespace
}  // namespace heed
