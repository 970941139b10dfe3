#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/framing.h"

namespace heed::text { namespace {

using testing::ElementsAre;

AddedToken token_of(std::string content, bool strips_left = false, bool strips_right = false) {
  AddedToken token;
  token.content = std::move(content);
  token.is_special = true;
  token.strips_left = strips_left;
  token.strips_right = strips_right;
  return token;
}

// Returns "[…]" for each token and "…" for the text between.
std::vector<std::string> found_in(const std::string& text, const std::vector<AddedToken>& tokens) {
  AddedTokenFinder finder;
  for (const AddedToken& token : tokens) finder.add(token, token.content);
  std::vector<std::string> found;
  for (const auto& [span, token] : finder.find(text, [](Span) -> std::size_t { return 0; })) {
    const std::string part = text.substr(span.begin, span.end - span.begin);
    found.push_back(token == nullptr ? part : "[" + part + "]");
  }
  return found;
}

// As in the library that writes these tokens: white space that a token takes may also begin another
// token.
TEST(AddedTokens, MayShareTheWhiteSpaceBetweenThem) {
  EXPECT_THAT(found_in("<|a  ab", {token_of("<|a", false, true), token_of(" a")}),
              ElementsAre("[<|a  ]", "[ a]", "b"));
  EXPECT_THAT(found_in("<|a   b", {token_of("<|a", false, true), token_of("  ")}),
              ElementsAre("[<|a   ]", "[  ]", " b"));
  EXPECT_THAT(found_in("<|a  ab", {token_of("<|a", false, true), token_of(" a", true)}),
              ElementsAre("[<|a  ]", "[a]", "b"));
  EXPECT_THAT(found_in("<|a\n b", {token_of("<|a", false, true), token_of("\n", true, true)}),
              ElementsAre("[<|a\n ]", "b"));
  EXPECT_THAT(found_in("<a>  <b> c", {token_of("<a>", false, true), token_of("<b>", true, true)}),
              ElementsAre("[<a>  ]", "[<b> ]", "c"));
}

TEST(AddedTokens, WhatIsPassedOverIsText) {
  AddedTokenFinder finder;
  const AddedToken token = token_of("<s>");
  finder.add(token, token.content);
  std::vector<Span> spans;
  const auto passed = [](Span span) -> std::size_t { return span.begin == 0 ? 3 : 0; };
  for (const auto& match : finder.find("<s><s>", passed)) spans.push_back(match.span);
  EXPECT_THAT(spans, ElementsAre(Span{0, 3}, Span{3, 6}));
}

}  // namespace
}  // namespace heed::text
