// Views of temporaries that end with the statement do not compile; functions on temporaries return
// owning copies.
#include <gtest/gtest.h>

#include <concepts>
#include <utility>

#include "heed/attention/mask.h"
#include "heed/core/tensor.h"
#include "heed/io/any_tensor.h"

namespace heed { namespace {

template <class T>
concept HasView = requires(T&& object) {
  std::forward<T>(object).view();
};
template <class T>
concept HasElements = requires(T&& object) {
  std::forward<T>(object).elements();
};
template <class T>
concept HasData = requires(T&& object) {
  std::forward<T>(object).data();
};
template <class T>
concept HasAnyView = requires(T&& object) {
  view(std::forward<T>(object));
};

static_assert(HasView<Tensor<float>&> && HasView<const Tensor<float>&>);
static_assert(!HasView<Tensor<float>> && !HasView<const Tensor<float>>);
static_assert(HasElements<Tensor<float>&> && HasElements<const Tensor<float>&>);
static_assert(!HasElements<Tensor<float>> && !HasElements<const Tensor<float>>);
static_assert(HasData<Tensor<float>&> && HasData<const Tensor<float>&>);
static_assert(!HasData<Tensor<float>> && !HasData<const Tensor<float>>);
static_assert(HasAnyView<AnyTensor&> && HasAnyView<const AnyTensor&>);
static_assert(!HasAnyView<AnyTensor> && !HasAnyView<const AnyTensor>);

// A view owns nothing: a view of a temporary view shows the same elements.
static_assert(HasElements<FloatView> && HasData<FloatView>);

// Other results of temporaries are copies.
static_assert(std::same_as<decltype(std::declval<Tensor<float>>().shape()), Shape>);
static_assert(std::same_as<decltype(std::declval<Tensor<float>>()(0, 1)), float>);
static_assert(std::same_as<decltype(std::declval<Tensor<float>&>()(0, 1)), float&>);
static_assert(std::same_as<decltype(shape(std::declval<AnyTensor>())), Shape>);

// A temporary argument exists until the call returns.
static_assert(std::convertible_to<Tensor<float>, FloatView>);
static_assert(std::convertible_to<Tensor<bool>, AnyView>);

float sum_of(FloatView view) {
  float sum = 0;
  for_each_element(view, [&](float element) { sum += element; });
  return sum;
}

TEST(Lifetime, OfATensorThatIsAnArgument) {
  EXPECT_EQ(sum_of(Tensor<float>({2, 2}, {1, 2, 3, 4})), 10);
  EXPECT_EQ(Tensor<float>({2, 2}, {1, 2, 3, 4})(1, 0), 3);
}

}  // namespace
}  // namespace heed
