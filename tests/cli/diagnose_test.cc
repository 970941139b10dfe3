#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "heed/io/npy.h"
#include "heed/io/safetensors.h"
#include "support/command.h"

namespace heed { namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using Arguments = std::vector<std::string>;

class Diagnose : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }

  std::string train(const std::string& task, const Arguments& more) const {
    Arguments arguments{"train", task, "--save", path(task)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return path(task);
  }
  std::string tiny_lm() const {
    return train("lm", {"--d-model", "8", "--heads", "2", "--layers", "2", "--batch", "2",
                        "--steps", "2", "--context", "16"});
  }

  // Two sequences and two heads of five tokens: one head looks at the previous token, one at key 0
  // only. The second sequence has four tokens, and its first head also looks at padding.
  std::string weights() const {
    Tensor<float> weights({2, 2, 5, 5});
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t q = 0; q < 5; ++q) {
        weights(b, 0, q, q == 0 ? 0 : q - 1) = b == 0 ? 1.0F : 0.75F;
        if (b == 1) weights(b, 0, q, 4) = 0.25F;
        weights(b, 1, q, 0) = 1;
      }
    }
    write_npy(path("w.npy"), weights);
    return path("w.npy");
  }

  static json parsed(const Arguments& arguments) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return json::parse(result.out);
  }
  static void expect_error(int exit_code, const Arguments& arguments, const std::string& text) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(text));
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(Diagnose, FindsWhoCopies) {
  const std::string model =
      train("copy", {"--length", "5", "--symbols", "8", "--steps", "150", "--lr", "0.01"});
  const json result = parsed({"diagnose", "--model", model, "--json"});
  EXPECT_EQ(result["task"], "copy");
  ASSERT_EQ(result["layers"].size(), 1U);
  const json& layer = result["layers"][0];
  EXPECT_EQ(layer["name"], "blocks.0.attention");
  ASSERT_EQ(layer["heads"].size(), 4U);
  double best = 0;
  for (const json& head : layer["heads"]) {
    EXPECT_EQ(head["rows"], 32 * 9);
    EXPECT_EQ(head["padding"], 0);
    EXPECT_EQ(head["next"], 0);
    if (head["offset"] == -5) best = std::max(best, head["offset_weight"].get<double>());
  }
  // From the separator on, one head looks at the symbol to repeat.
  EXPECT_GT(best, 0.5);
  const CommandResult text = run_command({"diagnose", "--model", model});
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("measured  32 sequences of 5 symbols, a separator and 4 of"),
                    HasSubstr("blocks.0.attention: 4 heads\n"), HasSubstr("  head  entropy"),
                    HasSubstr("mean cosine similarity of two heads: ")));
}

TEST_F(Diagnose, ReadsTextAndSentences) {
  const std::string model = tiny_lm();
  const json shipped = parsed({"diagnose", "--model", model, "--json"});
  EXPECT_EQ(shipped["sequences"], "32 sequences of 16 characters");
  ASSERT_EQ(shipped["layers"].size(), 2U);
  EXPECT_EQ(shipped["layers"][1]["name"], "blocks.1.attention");
  EXPECT_EQ(shipped["layers"][0]["heads"][1]["rows"], 32 * 15);
  const json sentences =
      parsed({"diagnose", "--model", model, "the sea", "a house", "he", "--json"});
  EXPECT_EQ(sentences["sequences"], "3 sequences of 7 characters at most");
  // Rows of padding are not counted.
  EXPECT_EQ(sentences["layers"][0]["heads"][0]["rows"], 6 + 6 + 1);
  std::ofstream(path("text")) << "the house at the sea";
  const json text = parsed({"diagnose", "--model", model, "--text", path("text"), "--json"});
  EXPECT_EQ(text["sequences"], "1 sequence of 16 characters");
  const CommandResult sent =
      run_command({"diagnose", "--model", model, "--text", "-", "--json"}, {}, "", path("text"));
  EXPECT_EQ(json::parse(sent.out), text) << sent.err;
}

TEST_F(Diagnose, LooksAtTranslators) {
  const auto tiny = [&](const std::string& attention) {
    std::string folder = path(attention);
    const Arguments arguments{"train",    "translate",  "--task",    "reverse",    "--max-length",
                              "4",        "--examples", "40",        "--held-out", "10",
                              "--epochs", "1",          "--d-model", "8",          "--attention",
                              attention,  "--save",     folder};
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return folder;
  };
  const json multihead = parsed({"diagnose", "--model", tiny("multihead"), "--json"});
  EXPECT_EQ(multihead["sequences"], "10 sentences and their translations, not seen in training");
  ASSERT_EQ(multihead["layers"].size(), 2U);
  EXPECT_EQ(multihead["layers"][0]["name"], "encoder_attention");
  EXPECT_EQ(multihead["layers"][1]["name"], "cross_attention");
  for (const json& layer : multihead["layers"]) {
    ASSERT_EQ(layer["heads"].size(), 4U);
    for (const json& head : layer["heads"]) EXPECT_EQ(head["padding"], 0);
  }
  const json dot = parsed({"diagnose", "--model", tiny("dot"), "a b c", "d a", "--json"});
  EXPECT_EQ(dot["sequences"], "2 sentences and what the model makes of them");
  ASSERT_EQ(dot["layers"].size(), 1U);
  EXPECT_EQ(dot["layers"][0]["heads"].size(), 1U);
  EXPECT_EQ(dot["layers"][0]["heads"][0]["padding"], 0);
  for (const char* attention : {"multihead", "dot"}) {
    const CommandResult page = run_command(
        {"diagnose", "--model", path(attention), "a b c", "d a", "--out", path("p.html")});
    EXPECT_EQ(page.exit_code, 0) << page.err;
    EXPECT_THAT(read_text(path("p.html")), HasSubstr(R"("keys":["a","b","c"])")) << attention;
  }
  EXPECT_THAT(run_command({"diagnose", "--model", tiny("none")}).out,
              HasSubstr("The model has no attention."));
}

TEST_F(Diagnose, WeightsOfAnybodys) {
  const json result = parsed({"diagnose", "--weights", weights(), "--lengths", "5,4", "--json"});
  const json& heads = result["heads"];
  EXPECT_EQ(heads[0]["rows"], 5 + 4);
  EXPECT_NEAR(heads[0]["previous"], (4 * 1 + 3 * 0.75) / 7, 1e-12);
  EXPECT_NEAR(heads[0]["padding"], 4 * 0.25 / 9, 1e-12);
  EXPECT_EQ(heads[1]["first"], 1);
  EXPECT_EQ(heads[1]["padding"], 0);
  EXPECT_FALSE(result["looks_causal"]);
  EXPECT_EQ(result["findings"][0]["kind"], "attention to padding");
  const CommandResult text = run_command({"diagnose", "--weights", weights(), "--lengths", "5,4"});
  EXPECT_THAT(
      text.out,
      AllOf(HasSubstr("  ! attention to padding: head 0: 0.111 of the weight lies on padding"),
            HasSubstr("  - previous-token head: head 0: "),
            HasSubstr("  - first-token sink: head 1: 1.000 of the weight"),
            HasSubstr("      Try: Give key_lengths(lengths)")));
}

TEST_F(Diagnose, FirstAxisOfWeightsMayBeLayers) {
  const std::string file = weights();
  const json result = parsed({"diagnose", "--weights", file, "--layers", "--json"});
  ASSERT_EQ(result["layers"].size(), 2U);
  EXPECT_FALSE(result.contains("heads"));
  EXPECT_EQ(result["layers"][1]["name"], "layer 1");
  EXPECT_EQ(result["layers"][0]["heads"][0]["previous"], 1);
  EXPECT_EQ(result["layers"][1]["heads"][0]["previous"], 0.75);
  EXPECT_EQ(result["layers"][1]["heads"][0]["rows"], 5);
  const CommandResult text = run_command({"diagnose", "--weights", file, "--layers"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("weights   "), HasSubstr("layer 0: 2 heads\n"),
                              HasSubstr("layer 1: 2 heads\n"), Not(HasSubstr("say --layers"))));
  EXPECT_THAT(run_command({"diagnose", "--weights", file}).out, HasSubstr("say --layers"));
  const Arguments page{"diagnose", "--weights", file, "--layers", "--out", path("w.html")};
  EXPECT_EQ(run_command(page).exit_code, 0);
  EXPECT_THAT(read_text(path("w.html")), HasSubstr(R"("title":"layer 1")"));
}

TEST_F(Diagnose, FiveAxesAreLayersAndSequences) {
  Tensor<float> weights({3, 2, 1, 2, 2});
  for (float& weight : weights.elements()) weight = 0.5F;
  write_npy(path("five.npy"), weights);
  const json result = parsed({"diagnose", "--weights", path("five.npy"), "--json"});
  ASSERT_EQ(result["layers"].size(), 3U);
  EXPECT_EQ(result["layers"][2]["name"], "layer 2");
  EXPECT_EQ(result["layers"][2]["heads"][0]["rows"], 4);
  write_npy(path("six.npy"), Tensor<float>({1, 1, 1, 1, 1, 1}));
  expect_error(1, {"diagnose", "--weights", path("six.npy")},
               "has shape [1, 1, 1, 1, 1, 1], expected layers in front of [batch, num_heads");
  write_npy(path("two.npy"), Tensor<float>({1, 1}));
  expect_error(1, {"diagnose", "--weights", path("two.npy"), "--layers"}, "has shape [1, 1]");
  expect_error(2, {"diagnose", "--model", "x", "--layers"}, "--layers");
}

TEST_F(Diagnose, AsksAboutMasksThatWeightsSuggest) {
  write_npy(path("causal.npy"), Tensor<double>({3, 3}, {1, 0, 0, 0.5, 0.5, 0, 0.5, 0.25, 0.25}));
  const Arguments arguments{"diagnose", "--weights", path("causal.npy")};
  EXPECT_THAT(run_command(arguments).out, HasSubstr("say --mask\ncausal"));
  Arguments masked = arguments;
  masked.insert(masked.end(), {"--mask", "causal"});
  EXPECT_THAT(run_command(masked).out, Not(HasSubstr("say --mask")));
  masked.emplace_back("--json");
  EXPECT_EQ(parsed(masked)["heads"][0]["rows"], 2);
}

TEST_F(Diagnose, NamesWhatIsWrong) {
  const std::string file = weights();
  expect_error(2, {"diagnose"}, "expected either --model or --weights");
  expect_error(2, {"diagnose", "--model", "x", "--weights", file}, "expected either");
  expect_error(2, {"diagnose", "--model", "x", "a", "--text", "b"}, "not both");
  expect_error(2, {"diagnose", "--model", "x", "--lengths", "3"}, "--lengths");
  expect_error(1, {"diagnose", "--model", path("none")}, "No such file");
  expect_error(1, {"diagnose", "--weights", path("none")}, "No such file");
  expect_error(1, {"diagnose", "--weights", file, "--lengths", "5,6"},
               "lengths[1] is 6, expected 0 to 5");
  write_npy(path("scores.npy"), Tensor<float>({2, 2}, {1, 2, -3, 4}));
  expect_error(1, {"diagnose", "--weights", path("scores.npy")}, "sum to 3, expected at most 1");
  write_safetensors(path("other.safetensors"), {});
  expect_error(1, {"diagnose", "--model", path("other.safetensors")},
               "is not what `heed train --save` wrote; a trained model");
  write_safetensors(path("other.safetensors"), {}, {{"settings", R"({"task":"chess"})"}});
  expect_error(1, {"diagnose", "--model", path("other.safetensors")}, "is of `heed train chess`");
}

TEST_F(Diagnose, InputThatDoesNotSuitTheModel) {
  const std::string lm = tiny_lm();
  expect_error(1, {"diagnose", "--model", lm, "größe"}, "'ö' did not occur");
  expect_error(1, {"diagnose", "--model", lm, "a"}, "less than two characters");
  expect_error(1, {"diagnose", "--model", lm, std::string(2049, 'a')}, "positions end at 2048");
  const std::string copy = train("copy", {"--length", "2", "--steps", "1", "--batch", "1"});
  expect_error(1, {"diagnose", "--model", copy, "abc"}, "reads symbols of its own, not text");
}

TEST_F(Diagnose, DrawsHowAlikeHeadsAre) {
  const std::string picture = path("heads.svg");
  const CommandResult drawn = run_command({"diagnose", "--weights", weights(), "--out", picture});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_THAT(read_text(picture), HasSubstr("<svg"));
  expect_error(2, {"diagnose", "--weights", weights(), "--out", path("a.gif")},
               "does not end in .png, .svg, .pdf, .json or .html");
}

TEST_F(Diagnose, WritesItsNumbersAndWhereHeadsLooked) {
  const auto written = [&](Arguments arguments, const std::string& name) {
    arguments.insert(arguments.end(), {"--out", path(name)});
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_text(path(name));
  };
  const Arguments of_weights{"diagnose", "--weights", weights()};
  EXPECT_EQ(json::parse(written(of_weights, "w.json")),
            parsed({"diagnose", "--weights", weights(), "--json"}));
  EXPECT_THAT(written(of_weights, "w.html"), HasSubstr(R"("tokens":["0","1","2","3","4"])"));
  const Arguments of_model{"diagnose", "--model", tiny_lm(), "the sea"};
  EXPECT_EQ(json::parse(written(of_model, "m.json"))["layers"].size(), 2U);
  EXPECT_THAT(written(of_model, "m.html"),
              AllOf(HasSubstr(R"("tokens":["t","h","e"," ","s","e","a"])"),
                    HasSubstr(R"("title":"blocks.1.attention")")));
}

}  // namespace
}  // namespace heed
