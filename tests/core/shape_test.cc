#include "heed/core/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape{}.num_elements(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).num_elements(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).num_elements(), 0);
  EXPECT_EQ((Shape{2, 3, 4})[-1], 4);
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
}

TEST(Shape, RefusesWhatIsNoShape) {
  EXPECT_THAT(([] { return Shape{1, -2}; }), ThrowsMessage<InvalidArgument>(HasSubstr("-2")));
  EXPECT_THAT(([] { return Shape{1, 1, 1, 1, 1, 1, 1}; }),
              ThrowsMessage<InvalidArgument>(HasSubstr("7 dimensions, at most 6")));
  const auto huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(([=] {
                return Shape{huge, 2};
              }),
              ThrowsMessage<InvalidArgument>(HasSubstr("63 bits")));
  // There are no elements, but the strides would overflow.
  EXPECT_THAT(([=] {
                return Shape{0, huge, huge};
              }),
              ThrowsMessage<InvalidArgument>(HasSubstr("63 bits")));
}

}  // namespace
}  // namespace heed
