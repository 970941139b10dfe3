#include "core/closest_name.h"

#include <gtest/gtest.h>

namespace heed { namespace {

const std::vector<std::string_view> kNames{"causal", "columns", "tree", "sliding_window"};

TEST(ClosestName, IsTheOneWithFewestChangesWithinAThird) {
  EXPECT_EQ(detail::closest_name("casual", kNames), "causal");
  EXPECT_EQ(detail::closest_name("colums", kNames), "columns");
  EXPECT_EQ(detail::closest_name("tre", kNames), "tree");
  EXPECT_EQ(detail::closest_name("slidingwindow", kNames), "sliding_window");
  EXPECT_EQ(detail::closest_name("fire", kNames), "");
  EXPECT_EQ(detail::closest_name("", kNames), "");
  EXPECT_EQ(detail::closest_name(std::string(1 << 20, 'a'), kNames), "");
  EXPECT_EQ(detail::closest_name("causal", {}), "");
}

TEST(ClosestName, EndsAMessage) {
  EXPECT_EQ(detail::did_you_mean("casual", kNames), "; did you mean 'causal'?");
  EXPECT_EQ(detail::did_you_mean("x", kNames), "");
}

}  // namespace
}  // namespace heed
