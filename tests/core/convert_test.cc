#include "heed/core/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/core/data_type.h"

namespace heed { namespace {

using testing::ElementsAre;

TEST(Converted, IsContiguousAndOfTheOtherType) {
  const Tensor<double> numbers({2, 3}, {1, 2, 3, 4, 5, 6.5});
  const Tensor<float> turned = converted<float>(numbers.view().permute({1, 0}));
  EXPECT_EQ(turned.shape(), (Shape{3, 2}));
  EXPECT_THAT(turned.elements(), ElementsAre(1, 4, 2, 5, 3, 6.5F));
  const Tensor<Float16> halves({2}, {Float16(0.5F), Float16(-2.0F)});
  const Tensor<float> whole = converted<float>(halves.view());
  EXPECT_THAT(whole.elements(), ElementsAre(0.5F, -2.0F));
  const Tensor<float> none({0, 2});
  EXPECT_TRUE(converted<double>(none.view()).empty());
}

}  // namespace
}  // namespace heed
