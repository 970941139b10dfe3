// The checks of tests/core/lifetime_test.cc for variables and modules.
#include <gtest/gtest.h>

#include <concepts>
#include <utility>

#include "heed/nn/functional.h"
#include "heed/nn/layers.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing_support::elements_of;
using testing_support::normal;
using testing_support::same_bits;

template <class T>
concept HasWritableValue = requires(T&& object) {
  std::forward<T>(object).writable_value();
};
template <class T>
concept HasWritableGrad = requires(T&& object) {
  std::forward<T>(object).writable_grad();
};
template <class T>
concept HasWritable = requires(T&& object) {
  std::forward<T>(object).writable();
};
template <class T>
concept HasView = requires(T&& object) {
  std::forward<T>(object).view();
};
template <class T>
concept HasGrad = requires(T&& object) {
  std::forward<T>(object).grad();
};
template <class T>
concept HasStateDict = requires(T&& object) {
  std::forward<T>(object).state_dict();
};

using View = TensorView<const float>;
static_assert(std::same_as<decltype(std::declval<Variable<>&>().value()), View>);
static_assert(std::same_as<decltype(std::declval<const Variable<>&>().value()), View>);
static_assert(std::same_as<decltype(std::declval<Variable<>>().value()), Tensor<float>>);
static_assert(std::same_as<decltype(std::declval<const Variable<>>().value()), Tensor<float>>);
static_assert(std::same_as<decltype(std::declval<const Variable<>&>().grad()), View>);
static_assert(std::same_as<decltype(std::declval<Variable<>>().grad()), Tensor<float>>);
static_assert(std::same_as<decltype(std::declval<Variable<>>().shape()), Shape>);
static_assert(std::same_as<decltype(std::declval<Variable<>>().shared_value()), Value<float>>);
static_assert(HasWritableValue<const Variable<>&> && !HasWritableValue<Variable<>>);
static_assert(HasWritableGrad<const Variable<>&> && !HasWritableGrad<Variable<>>);
static_assert(HasView<const Value<float>&> && !HasView<Value<float>>);
static_assert(HasWritable<const Value<float>&> && !HasWritable<Value<float>>);
static_assert(HasView<const Saved<float>&> && !HasView<Saved<float>>);
static_assert(HasGrad<const Step<float>&> && !HasGrad<Step<float>>);
static_assert(HasStateDict<const Linear<>&> && !HasStateDict<Linear<>>);
static_assert(
    std::same_as<decltype(split_heads(std::declval<const Tensor<float>&>(), 1)), FloatView>);
static_assert(std::same_as<decltype(split_heads(std::declval<Tensor<float>>(), 1)), Tensor<float>>);

TEST(Lifetime, OfTheValueOfATemporary) {
  Linear<> layer(3, 2);
  const Variable<> x(normal<float>({4, 3}, 1), true);
  const Variable<> y = layer.forward(x);
  const auto value = layer.forward(x).value();
  EXPECT_TRUE(same_bits(value, to_tensor(y.value())));
  sum(y).backward();
  const auto handle = [&] { return Variable<>(x); };
  const auto grad = handle().grad();
  x.zero_grad();
  EXPECT_EQ(elements_of(grad).size(), 12U);
}

TEST(Lifetime, OfTheHeadsOfATemporary) {
  const Tensor<float> x = normal<float>({2, 3, 8}, 1);
  const auto heads = split_heads(Tensor<float>(x), 4);
  EXPECT_TRUE(same_bits(heads, to_tensor(split_heads(x, 4))));
}

}  // namespace
}  // namespace heed::nn
