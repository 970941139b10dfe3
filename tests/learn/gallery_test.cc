#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "heed/core/tensor.h"
#include "heed/io/npy.h"
#include "support/command.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;

TEST(Gallery, ListsItsPictures) {
  const CommandResult result = run_command({"gallery", "--list"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* name :
       {"causal-heads", "positions-64", "weights-of-four", "bidirectional-and-causal",
        "eight-heads", "temperatures", "one-and-many-heads", "causal-mask", "positions-128",
        "position-dimensions", "no-masking", "with-causal-masking", "mask-digits",
        "eight-causal-heads", "sentence-head"}) {
    EXPECT_THAT(result.out, HasSubstr(name));
  }
  for (const char* name : {"bleu-against-length", "translation-alignment", "constructed-heads"}) {
    const std::string line = result.out.substr(result.out.find(name));
    EXPECT_THAT(line.substr(0, line.find('\n')), HasSubstr("(illustrative)"));
  }
}

TEST(Gallery, WritesEveryPictureLightAndDarkWithAnIndex) {
  const TemporaryFolder folder;
  const CommandResult result = run_command({"gallery", folder / "all"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string html = read_text(folder / "all/index.html");
  const std::string markdown = read_text(folder / "all/README.md");
  std::size_t pictures = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder / "all")) {
    const std::string name = file.path().filename().string();
    if (file.path().extension() != ".svg") continue;
    ++pictures;
    EXPECT_THAT(html, HasSubstr(name));
    EXPECT_THAT(markdown, HasSubstr(name));
    EXPECT_THAT(read_text(file.path().string()), HasSubstr("</svg>"));
  }
  EXPECT_GE(pictures, 2 * 18U);
  EXPECT_THAT(html, testing::Not(HasSubstr("http")));
}

// A report of `heed bench linear --json` with two numbers of threads.
TEST(Gallery, DrawsTheTimesOfAReport) {
  const TemporaryFolder folder;
  const auto result = [](const char* method, const char* mask, int seq, int threads, double ms) {
    return nlohmann::json{{"case",
                           {{"method", method},
                            {"mask", mask},
                            {"heads", 8},
                            {"seq", seq},
                            {"head_dim", 64},
                            {"threads", threads}}},
                          {"median_ms", ms}};
  };
  const nlohmann::json report{
      {"machine", {{"processor", "a processor"}}},
      {"results",
       {result("softmax", "none", 256, 2, 1), result("elu+1", "none", 256, 2, 2),
        result("softmax", "none", 512, 2, 4), result("elu+1", "none", 512, 2, 3),
        result("linear", "causal", 256, 2, 1), result("linear", "causal", 512, 2, 2),
        result("relu", "none", 256, 7, 1)}}};
  std::ofstream(folder / "times.json") << report;
  const auto draw = [&](const std::string& times) {
    return run_command({"gallery", folder / "out", "--only", "time-against-length", "--format",
                        "html", "--light", "--times", times});
  };
  ASSERT_EQ(draw(folder / "times.json").err, "");
  // The drawn numbers are in the page; the picture's text is outlines.
  const std::string page = read_text(folder / "out/time-against-length.html");
  EXPECT_THAT(page, AllOf(HasSubstr("softmax"), HasSubstr("elu+1"), HasSubstr("linear, causal")));
  EXPECT_THAT(page, testing::Not(HasSubstr("relu")));
  std::ofstream(folder / "wrong.json") << R"({"results": []})";
  const CommandResult wrong = draw(folder / "wrong.json");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("--times: there are no results as `heed bench linear --json`"));
}

TEST(Gallery, WritesOnlyWhatIsAskedFor) {
  const TemporaryFolder folder;
  const CommandResult result =
      run_command({"gallery", folder / "some", "--only", "causal-mask", "--format", "png"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_text(folder / "some/causal-mask.png"), StartsWith("\x89PNG"));
  EXPECT_TRUE(std::filesystem::exists(folder / "some/causal-mask-dark.png"));
  EXPECT_FALSE(std::filesystem::exists(folder / "some/index.html"));
}

// tests/python/test_gallery.py compares the numbers with PyTorch's.
TEST(Gallery, APageHasThePictureAndItsNumbers) {
  const TemporaryFolder folder;
  const CommandResult result = run_command(
      {"gallery", folder / "some", "--only", "sentence-head", "--light", "--format", "html"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_text(folder / "some/sentence-head.html"),
              AllOf(HasSubstr("<img alt=\""),
                    HasSubstr("<th scope=\"row\">cat</th><td>0.75</td><td>0.25</td><td>masked")));
}

TEST(Gallery, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  CommandResult result = run_command({"gallery", folder / "x", "--only", "mona-lisa"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("there is no \"mona-lisa\""), HasSubstr("causal-mask")));
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
  result = run_command({"gallery"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("DIR is missing"));
  result = run_command({"gallery", "/dev/null/x"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot make the folder '/dev/null/x'"));
}

TEST(Pictures, ExplainDrawsASentence) {
  const TemporaryFolder folder;
  for (const auto& [name, start] :
       {std::pair{"a.svg", "<?xml"}, {"a.png", "\x89PNG"}, {"a.pdf", "%PDF"}, {"a.json", "{"}}) {
    const CommandResult result = run_command(
        {"explain", "<b>The cat</b> 猫 שלום 👩‍👩‍👧", "--out", folder / name,
         "--color-scale", "log", "--hide-first", "--dark", "--map", "greys"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(read_text(folder / name), StartsWith(start));
  }
}

TEST(Pictures, ExplainDrawsOneHeadOrAll) {
  const TemporaryFolder folder;
  run_command({"explain", "one two three", "--out", folder / "all.svg"});
  run_command({"explain", "one two three", "--out", folder / "one.svg", "--head", "2"});
  EXPECT_LT(read_text(folder / "one.svg").size(), read_text(folder / "all.svg").size());
}

TEST(Pictures, OptionsAreChecked) {
  const TemporaryFolder folder;
  CommandResult result = run_command({"explain", "a", "--color-scale", "cubic"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--color-scale"));
  result = run_command({"explain", "a", "--out", folder / "a.gif"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr(".png, .svg, .pdf"));
  result = run_command({"explain", "a", "--out", folder / "a.svg", "--hide-first"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("leaves no key"));
  EXPECT_EQ(folder.num_files(), 0U);
}

TEST(Pictures, ALessonIsAPageWithItsNumbers) {
  const TemporaryFolder folder;
  const std::string page = folder / "t.html";
  ASSERT_EQ(run_command({"lesson", "temperature", "--out", page, "--dark"}).exit_code, 0);
  EXPECT_THAT(read_text(page), AllOf(HasSubstr("data-theme=\"dark\""), HasSubstr("<td>0.53</td>")));
}

TEST(Pictures, RunDrawsTheWeightsOfItsArrays) {
  const TemporaryFolder folder;
  const Tensor<float> x({2, 2, 5, 4});
  write_npy(folder / "x.npy", x.view());
  const auto run = [&](const std::string& out) {
    return run_command({"run", "--query", folder / "x.npy", "--key", folder / "x.npy", "--value",
                        folder / "x.npy", "--out", out, "--mask", "causal"});
  };
  CommandResult result = run(folder / "w.svg");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("[2, 2, 5, 5]"));
  EXPECT_THAT(read_text(folder / "w.svg"), HasSubstr("<title>Attention weights</title>"));
  result = run(folder / "w.json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(read_text(folder / "w.json"));
  EXPECT_EQ(json["weights"][1][1][1], (std::vector<double>{0.5, 0.5, 0, 0, 0}));
}

TEST(Pictures, RunWritesThePageOfItsArrays) {
  const TemporaryFolder folder;
  write_npy(folder / "q.npy", Tensor<double>({2, 4, 2, 3}));
  write_npy(folder / "k.npy", Tensor<double>({2, 2, 5, 3}));
  const auto page = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "run",     "--query",        folder / "q.npy", "--key",          folder / "k.npy",
        "--value", folder / "k.npy", "--out",          folder / "p.html"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::string text = read_text(folder / "p.html");
    return text.substr(text.find("id=\"data\""));
  };
  EXPECT_THAT(page({"--mask", "causal(bottom_right)"}),
              AllOf(HasSubstr(R"("keys":["key 0","key 1")"), HasSubstr(R"("numHeads":4)"),
                    HasSubstr("Batch entry 0 of 2."), HasSubstr(R"("query":)")));
  // The page's formula has no softcap, so the page gets the weights and the mask.
  EXPECT_THAT(page({"--softcap", "5", "--mask", "causal(bottom_right)"}),
              AllOf(HasSubstr(R"("weights":)"), testing::Not(HasSubstr(R"("query":)")),
                    HasSubstr(R"x("maskName":"causal(bottom_right)")x"),
                    testing::Not(HasSubstr(R"("mask":"none")"))));
}

}  // namespace
}  // namespace heed
