#include "heed/viz/explorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "heed/core/error.h"
#include "support/refusal.h"
#include "viz/explorer/page.h"

namespace heed { namespace {

using testing_support::Message;

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

ExplorerSentence two_tokens() {
  ExplorerSentence sentence;
  sentence.title = "two";
  sentence.tokens = {"a", "b"};
  sentence.query = Tensor<float>({1, 2, 1}, {1, 2});
  sentence.key = Tensor<float>({1, 2, 1}, {3, 4});
  return sentence;
}

void expect_refused(const ExplorerSentence& sentence, const Message& message) {
  EXPECT_THAT([&] { explorer_json(sentence); }, ThrowsMessage<InvalidArgument>(message));
}

// RFC 4648, section 10.
TEST(ExplorerBase64, IsThatOfTheStandard) {
  const auto encoded = [](std::string_view text) {
    return explorer::base64(std::as_bytes(std::span(text)));
  };
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(explorer::base64_of_hex("00ff10"), "AP8Q");
}

TEST(Explorer, TheSentenceIsWhatItWasGiven) {
  ExplorerSentence sentence = two_tokens();
  sentence.visible = Tensor<bool>({2, 2}, {true, false, true, true});
  const auto json = nlohmann::json::parse(explorer_json(sentence));
  EXPECT_EQ(json.at("tokens"), (nlohmann::json{"a", "b"}));
  EXPECT_EQ(json.at("mask"), "causal");
  EXPECT_EQ(json.at("scale"), 1.0);
  EXPECT_EQ(json.at("openingQuery"), 1);
  EXPECT_EQ(json.at("query"), "AACAPwAAAEA=");  // 1 and 2 as little-endian floats
  EXPECT_FALSE(json.contains("weights"));
  sentence.visible = Tensor<bool>({2, 2}, {true, false, false, true});
  EXPECT_EQ(nlohmann::json::parse(explorer_json(sentence)).at("mask").at("bits"), "kA==");
}

TEST(Explorer, KeysMayBeOtherTokensThanQueries) {
  ExplorerSentence sentence{
      .title = "cross", .tokens = {"le", "chat"}, .keys = {"the", "<b>", "."}};
  sentence.weights = Tensor<float>({1, 2, 3}, {1, 0, 0, 0, 0.5F, 0.5F});
  sentence.visible = Tensor<bool>({2, 3}, {true, false, false, true, true, false});
  auto json = nlohmann::json::parse(explorer_json(sentence));
  EXPECT_EQ(json.at("keys"), (nlohmann::json{"the", "<b>", "."}));
  EXPECT_EQ(json.at("mask"), "causal");
  EXPECT_EQ(json.at("openingQuery"), 1);
  sentence.visible(0, 2) = true;
  json = nlohmann::json::parse(explorer_json(sentence));
  EXPECT_EQ(json.at("mask").at("bits"), "uA==");  // 101 110
  sentence.visible = Tensor<bool>({2, 2});
  expect_refused(sentence, {"visible", "[2, 2]"});
  sentence.visible = {};
  sentence.weights = Tensor<float>({1, 3, 2});
  expect_refused(sentence, {"weights", "[1, 3, 2]"});
}

TEST(Explorer, TextsAreHarmless) {
  ExplorerSentence sentence = two_tokens();
  sentence.title = "</script><img src=x>&\xff\x1b\u202e";
  sentence.tokens = {"<!--", "\"'\u2028"};
  const std::string text = explorer_json(sentence);
  for (const char* raw : {"<", ">", "&", "\x1b", "\xff", "\u202e", "\u2028"}) {
    EXPECT_THAT(text, Not(HasSubstr(raw)));
  }
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json.at("title"), "</script><img src=x>&\\xFF\\x1B\\u{202E}");
  EXPECT_EQ(json.at("tokens")[0], "<!--");
}

TEST(Explorer, LargeWeightsAreLeftOut) {
  ExplorerSentence sentence;
  sentence.title = "long";
  sentence.tokens.assign(300, "a");
  sentence.query = Tensor<float>({1, 300, 1});
  sentence.key = sentence.query;
  sentence.weights = Tensor<float>({1, 300, 300});
  EXPECT_FALSE(nlohmann::json::parse(explorer_json(sentence)).contains("weights"));
  sentence.query = sentence.key = Tensor<float>();
  EXPECT_TRUE(nlohmann::json::parse(explorer_json(sentence)).contains("weights"));
}

TEST(Explorer, ThePageIsOneFileWithAPolicy) {
  const std::string page = explorer_page({{explorer_example()}});
  const std::string script = "'sha256-" + explorer::base64_of_hex(explorer::script_sha256()) + "'";
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src " + script + "; style-src 'sha256-"));
  EXPECT_THAT(page, HasSubstr("connect-src 'none'"));
  EXPECT_THAT(page, HasSubstr("<script>" + std::string(explorer::script_source()) + "</script>"));
  EXPECT_THAT(page, HasSubstr("<style>" + std::string(explorer::style_source()) + "</style>"));
  for (const char* name :
       {"@POLICY@", "@STYLE@", "@DATA@", "@LAYERS@", "@SCRIPT@", "src=", "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(name)));
  }
  EXPECT_THAT(explorer_page({{explorer_example()}, true}), HasSubstr("connect-src 'self'"));
}

// A text with the name of a placeholder of the page is not replaced.
TEST(Explorer, AnyTextCanBeShown) {
  ExplorerSentence sentence = two_tokens();
  sentence.tokens = {"@SCRIPT@", "@DATA@"};
  const std::string page = explorer_page({{sentence}});
  EXPECT_THAT(page, HasSubstr(R"("tokens":["@SCRIPT@","@DATA@"])"));
  EXPECT_EQ(page.substr(page.size() - 8), "</html>\n");
}

TEST(Explorer, TheExampleAttendsAsItSays) {
  const ExplorerSentence example = explorer_example();
  const auto strongest = [&](std::int64_t head, std::int64_t q) {
    std::int64_t best = 0;
    double best_score = -std::numeric_limits<double>::infinity();
    for (std::int64_t k = 0; k < 6; ++k) {
      double score = 0;
      for (std::int64_t i = 0; i < 4; ++i)
        score += example.query(head, q, i) * example.key(head, k, i);
      if (score > best_score) best = k;
      best_score = std::max(score, best_score);
    }
    return example.tokens[static_cast<std::size_t>(best)] + std::to_string(best);
  };
  EXPECT_EQ(strongest(0, 2), "cat1");
  EXPECT_EQ(strongest(0, 0), "the4");
  EXPECT_EQ(strongest(0, 4), "the0");
  for (std::int64_t q = 1; q < 6; ++q)
    EXPECT_THAT(strongest(1, q), HasSubstr(std::to_string(q - 1)));
}

TEST(Explorer, RefusesWhatDoesNotFit) {
  EXPECT_THAT([] { explorer_page({}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("sentences is empty")));
  const auto with = [](auto change) {
    ExplorerSentence sentence = two_tokens();
    change(sentence);
    return sentence;
  };
  const float nan = std::nanf("");
  expect_refused(with([](auto& s) { s.tokens.clear(); }), "tokens is empty");
  expect_refused(with([](auto& s) { s.tokens.emplace_back("c"); }), {"query", "[1, 2, 1]"});
  expect_refused(with([](auto& s) { s.key = Tensor<float>(); }),
                 "expected query and key, or neither");
  expect_refused(with([](auto& s) { s.query = s.key = Tensor<float>(); }), "weights is empty");
  expect_refused(with([](auto& s) { s.key = Tensor<float>({1, 2, 2}); }), {"key", "[1, 2, 2]"});
  expect_refused(with([&](auto& s) { s.query(0, 1, 0) = nan; }), {"query", "nan"});
  expect_refused(with([](auto& s) {
                   s.weights = Tensor<float>({1, 2, 2}, {1, 0, 2, -1});
                 }),
                 {"weights", "-1"});
  expect_refused(with([](auto& s) { s.visible = Tensor<bool>({1, 2}); }), {"visible", "[1, 2]"});
  expect_refused(with([](auto& s) { s.heads = {"x", "y"}; }), {"heads", "2"});
  expect_refused(with([](auto& s) { s.temperature = 0; }), {"temperature", "0"});
  expect_refused(with([](auto& s) { s.opening_query = 2; }), {"opening_query", "2"});
  expect_refused(with([](auto& s) { s.d_model = 3; }), {"d_model", "3"});
}

}  // namespace
}  // namespace heed
