#include "io/json_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "heed/core/error.h"

namespace heed::io { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

void expect_text_refused(const std::string& text, const std::string& problem) {
  EXPECT_THAT([&] { parse_json(text, "f"); }, ThrowsMessage<FormatError>(HasSubstr(problem)))
      << text.substr(0, 100);
}

TEST(JsonValue, IsATree) {
  const std::string file = "f";
  const JsonValue root =
      parse_json(R"({"a": [1, -2.5, "x", true, null], "b": {"c": "d"}, "n": null})", file);
  const JsonPart part(file, root);
  const auto items = part.at("a").items();
  ASSERT_EQ(items.size(), 5U);
  EXPECT_EQ(items[0].integer(), 1);
  EXPECT_EQ(items[1].value().number, -2.5);
  EXPECT_EQ(items[2].string(), "x");
  EXPECT_TRUE(items[3].boolean());
  EXPECT_TRUE(items[4].is(JsonKind::kNull));
  EXPECT_EQ(part.at("b").string_or("c", ""), "d");
  EXPECT_EQ(part.at("b").string_or("e", "other"), "other");
  EXPECT_TRUE(part.boolean_or("n", true));
  EXPECT_FALSE(part.find("n"));
}

TEST(JsonValue, ErrorsNameThePlace) {
  const std::string file = "f";
  const JsonValue root = parse_json(R"({"a": [{"b": 1}]})", file);
  const JsonPart part(file, root);
  EXPECT_THAT([&] { (void)part.at("a").items()[0].at("b").string(); },
              ThrowsMessage<FormatError>(
                  HasSubstr("f: at byte 15: a[0].b is an integer, expected a string")));
  EXPECT_THAT([&] { (void)part.at("a").items()[0].at("c"); },
              ThrowsMessage<FormatError>(HasSubstr("a[0] has no 'c'")));
  EXPECT_THAT([&] { (void)part.items(); },
              ThrowsMessage<FormatError>(HasSubstr("the file is an object, expected an array")));
}

TEST(JsonValue, RefusesWhatIsNotJson) {
  expect_text_refused("", "not valid JSON");
  expect_text_refused("{\"a\": 1,}", "not valid JSON");
  expect_text_refused("\"\xFF\"", "not valid JSON");
  expect_text_refused("1 2", "not valid JSON");
  expect_text_refused("1e999", "not valid JSON");
  expect_text_refused(R"({"a": 1, "b": 2, "a": 3})", "the key 'a' occurs twice");
  expect_text_refused("[9223372036854775808]", "the number 9223372036854775808 is beyond 63 bits");
  expect_text_refused(std::string(65, '['), "more than 64 values are nested");
  EXPECT_NO_THROW(parse_json(std::string(64, '[') + std::string(64, ']'), "f"));
}

}  // namespace
}  // namespace heed::io
