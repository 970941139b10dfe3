#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heed { namespace {

using testing::Not;
using testing_support::Names;

TEST(Refusal, NamesAnArgumentAndItsValue) {
  const std::string message = "sliding_window: left is -1, expected at least 0; right is 2.5";
  EXPECT_THAT(message, Names("left", "-1"));
  EXPECT_THAT(message, Names("right", "2.5"));
  EXPECT_THAT("attention: bias has shape [5], expected [4]", Names("bias", "[5]"));
  EXPECT_THAT("q_len is 3 but q_len is 5", Names("q_len", "5"));
}

TEST(Refusal, OtherNamesAndValuesAreNotTaken) {
  const std::string message = "sliding_window: left is -1, expected at least 0; right is 2.5";
  EXPECT_THAT(message, Not(Names("left", "0"))) << "what is expected";
  EXPECT_THAT(message, Not(Names("left", "1"))) << "another sign";
  EXPECT_THAT(message, Not(Names("right", "2"))) << "a part of a number";
  EXPECT_THAT(message, Not(Names("right", "5"))) << "a part of a number";
  EXPECT_THAT(message, Not(Names("window", "-1"))) << "a part of a name";
  EXPECT_THAT(message, Not(Names("left", "2.5"))) << "the value of another";
  EXPECT_THAT("max_len is 12", Not(Names("len", "12")));
  EXPECT_THAT("max_len is 12", Not(Names("max_len", "1")));
}

}  // namespace
}  // namespace heed
