#include "heed/core/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/refusal.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Message;
using testing_support::Refuses;

Tensor<int> counting(const Shape& shape) {
  Tensor<int> tensor(shape);
  int next = 0;
  for (int& element : tensor.elements()) element = next++;
  return tensor;
}

std::vector<int> listed(TensorView<const int> view) {
  std::vector<int> elements;
  for_each_element(view, [&](int element) { elements.push_back(element); });
  return elements;
}

TEST(Tensor, IsAlignedAndZero) {
  const Tensor<float> tensor(Shape{3, 5});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0U);
  EXPECT_THAT(tensor.elements(), testing::Each(0.0F));
}

TEST(Tensor, CopiesAndMoves) {
  Tensor<int> a = counting({2, 2});
  Tensor<int> b = a;
  b(0, 0) = 7;
  EXPECT_EQ(a(0, 0), 0);
  const Tensor<int> c = std::move(b);
  EXPECT_EQ(c(0, 0), 7);
  EXPECT_TRUE(b.empty());  // NOLINT(bugprone-use-after-move): the state of what was moved from is
                           // documented
}

TEST(Tensor, TakesAnotherShape) {
  Tensor<int> tensor = counting({2, 3});
  EXPECT_THAT(([&] { return std::move(tensor).reshaped({5}); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("[2, 3] has 6 elements but [5] has 5")));
  const Tensor<int> reshaped = std::move(tensor).reshaped({3, 2});
  EXPECT_EQ(reshaped(2, 1), 5);
}

TEST(Tensor, ChecksTheNumberOfElements) {
  EXPECT_THAT(
      ([] {
        return Tensor<int>({2, 2}, {1, 2, 3});
      }),
      ThrowsMessage<InvalidArgument>(HasSubstr("3 elements were given but shape [2, 2] has 4")));
  EXPECT_THAT(([] { return Tensor<double>(Shape{std::int64_t{1} << 61}); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("too large")));
}

TEST(TensorView, IndexesThroughStrides) {
  const Tensor<int> tensor = counting({2, 3, 4});
  const auto view = tensor.view();
  EXPECT_EQ(view(1, 2, 3), 23);
  const auto permuted = view.permute({2, 0, 1});
  EXPECT_EQ(permuted.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(permuted(3, 1, 2), 23);
  EXPECT_FALSE(permuted.is_contiguous());
  EXPECT_EQ(to_tensor(permuted)(3, 1, 2), 23);
  EXPECT_THAT(listed(view.select(1, 2).select(0, 1)), ElementsAre(20, 21, 22, 23));
  EXPECT_THAT(listed(view.slice(-1, 1, 3).select(0, 0).select(0, 0)), ElementsAre(1, 2));
}

TEST(TensorView, BroadcastsFromTheRight) {
  const Tensor<int> row = counting({3});
  EXPECT_THAT(listed(row.view().broadcast_to({2, 3})), ElementsAre(0, 1, 2, 0, 1, 2));
  const Tensor<int> column = counting({2, 1});
  EXPECT_THAT(listed(column.view().broadcast_to({2, 2})), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(([&] {
                return row.view().broadcast_to({3, 2});
              }),
              ThrowsMessage<InvalidArgument>(HasSubstr("[3] does not broadcast to [3, 2]")));
}

TEST(TensorView, GainsLeadingDimensions) {
  const Tensor<int> tensor = counting({2, 3});
  const auto view = tensor.view().permute({1, 0}).to_rank(4);
  EXPECT_EQ(view.shape(), (Shape{1, 1, 3, 2}));
  EXPECT_THAT(listed(view), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(([&] { return tensor.view().to_rank(1); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("[2, 3] cannot be given rank 1")));
}

TEST(TensorView, KnowsWhenItIsContiguous) {
  const Tensor<int> tensor = counting({2, 1, 4});
  EXPECT_TRUE(tensor.view().is_contiguous());
  EXPECT_TRUE(tensor.view().permute({1, 0, 2}).is_contiguous());
  EXPECT_FALSE(tensor.view().slice(2, 0, 2).is_contiguous());
  EXPECT_TRUE(tensor.view().slice(2, 0, 0).is_contiguous());
  EXPECT_THAT(([&] { return tensor.view().slice(2, 0, 2).reshape({4}); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("to_tensor")));
  EXPECT_THAT(([&] { return tensor.view().reshape({3}); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("[2, 1, 4] has 8 elements but [3] has 3")));
}

TEST(TensorView, ChecksIndicesWhereItIsAsked) {
  Tensor<int> tensor = counting({2, 3});
  const Tensor<int>& constant = tensor;
  const auto view = tensor.view().permute({1, 0});
  EXPECT_EQ(view.at(2, 1), 5);
  EXPECT_EQ(constant.at(1, 0), 3);
  EXPECT_EQ(counting({2, 3}).at(1, 2), 5);
  tensor.at(0U, std::size_t{1}) = 7;
  EXPECT_EQ(tensor(0, 1), 7);
  EXPECT_EQ(Tensor<int>(Shape{}).at(), 0);
  const auto refused = [](const auto& read, const Message& text) {
    EXPECT_THAT(read, ThrowsMessage<InvalidArgument>(text));
  };
  refused([&] { return tensor.at(2, 0); }, {"index of dimension 0", "2"});
  refused([&] { return constant.at(1, -1); }, {"index of dimension 1", "-1"});
  refused([&] { return view.at(0, std::numeric_limits<std::int64_t>::max()); },
          {"index of dimension 1", "9223372036854775807"});
  refused([&] { return view.at(0); },
          "TensorView::at: 1 index is given, but shape [3, 2] has 2 dimensions");
  refused([&] { return view.at(0, 0, 0); }, "3 indices are given, but shape [3, 2]");
  refused([&] { return Tensor<int>().at(0); }, {"index of dimension 0", "0"});
}

TEST(TensorView, HasTheOnlyElement) {
  EXPECT_EQ(Tensor<int>({1, 1}, {4}).item(), 4);
  const Tensor<int> tensor = counting({2, 3});
  EXPECT_EQ(tensor.view().select(0, 1).slice(0, 2, 3).item(), 5);
  EXPECT_THAT(
      [&] { return tensor.item(); },
      ThrowsMessage<InvalidArgument>(HasSubstr("item: shape [2, 3] has 6 elements, expected one")));
  EXPECT_THAT([&] { return Tensor<int>().item(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("shape [0] has 0 elements")));
}

TEST(Tensor, IsMadeOfAView) {
  const Tensor<int> tensor = counting({2, 3});
  const Tensor<int> turned(tensor.view().permute({1, 0}));
  EXPECT_EQ(turned.shape(), (Shape{3, 2}));
  EXPECT_EQ(turned.size(), 6U);
  EXPECT_EQ(tensor.view().slice(0, 0, 1).size(), 3U);
  EXPECT_THAT(listed(turned.view()), ElementsAre(0, 3, 1, 4, 2, 5));
  const Tensor deduced(tensor.view().select(0, 1));
  EXPECT_THAT(listed(deduced.view()), ElementsAre(3, 4, 5));
  static_assert(!std::convertible_to<TensorView<const int>, Tensor<int>>, "copies are asked for");
}

TEST(TensorView, RefusesWhatIsOutOfRange) {
  const Tensor<int> tensor = counting({2, 3});
  EXPECT_THAT(([&] { return tensor.view().select(0, std::numeric_limits<std::int64_t>::max()); }),
              Refuses("index", "9223372036854775807"));
  EXPECT_THAT(([&] { return tensor.view().slice(0, 1, 3); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("[1, 3) is not a range within [0, 2)")));
  EXPECT_THAT(
      ([&] { return tensor.view().select(2, 0); }),
      ThrowsMessage<InvalidArgument>(HasSubstr("dimension 2 does not exist in shape [2, 3]")));
  EXPECT_THAT(([&] {
                return tensor.view().permute({0, 0});
              }),
              ThrowsMessage<InvalidArgument>(HasSubstr("(0, 0) is not a permutation")));
}

TEST(TensorView, EmptyShapesAreVisitedZeroTimes) {
  const Tensor<int> tensor = counting({0, 3});
  EXPECT_TRUE(listed(tensor.view()).empty());
  EXPECT_TRUE(to_tensor(tensor.view()).empty());
}

}  // namespace
}  // namespace heed
