#include "nn/blas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <latch>
#include <limits>
#include <thread>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/nn/blas.h"
#include "support/refusal.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Refuses;

/// Returns integers in [−8, 8], drawn from the seed. Their products and sums are exact in float, so
/// that results are equal in any order of summation.
template <class T>
Tensor<T> whole_numbers(const Shape& shape, std::uint32_t seed) {
  Tensor<T> tensor(shape);
  std::uint32_t state = seed * 2654435769U + 1;
  for (T& element : tensor.elements()) {
    state = state * 1664525U + 1013904223U;
    element = static_cast<T>(static_cast<int>(state >> 20 & 15U) - 8);
  }
  return tensor;
}

/// Returns alpha · a · b + beta · out by the definition.
template <class T>
Tensor<T> plain_product(TensorView<const T> a, TensorView<const T> b, TensorView<const T> out,
                        ProductScale<T> scale) {
  Tensor<T> result(out.shape());
  for (std::int64_t i = 0; i < out.extent(0); ++i) {
    for (std::int64_t j = 0; j < out.extent(1); ++j) {
      T sum = 0;
      for (std::int64_t k = 0; k < a.extent(1); ++k) sum += a(i, k) * b(k, j);
      result(i, j) = scale.alpha * sum + (scale.beta == 0 ? 0 : scale.beta * out(i, j));
    }
  }
  return result;
}

template <class T>
void expect_equal(TensorView<const T> found, TensorView<const T> expected) {
  ASSERT_EQ(found.shape(), expected.shape());
  for (std::int64_t i = 0; i < found.extent(0); ++i) {
    for (std::int64_t j = 0; j < found.extent(1); ++j) ASSERT_EQ(found(i, j), expected(i, j));
  }
}

/// The memory layouts of a matrix of `rows` by `columns`.
template <class T>
struct Storage {
  Tensor<T> memory;
  TensorView<T> view;
};

template <class T>
Storage<T> stored(int layout, std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
  Storage<T> result;
  switch (layout) {
    case 0:
      result.memory = whole_numbers<T>({rows, columns}, seed);
      result.view = result.memory.view();
      break;
    case 1:  // transposed
      result.memory = whole_numbers<T>({columns, rows}, seed);
      result.view = result.memory.view().permute({1, 0});
      break;
    case 2:  // gaps between rows
      result.memory = whole_numbers<T>({rows, columns + 3}, seed);
      result.view = result.memory.view().slice(1, 2, columns + 2);
      break;
    default:  // gaps within rows
      result.memory = whole_numbers<T>({rows, columns, 2}, seed);
      result.view = result.memory.view().select(2, 1);
  }
  return result;
}

template <class T>
class Matmul : public testing::Test {};
using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(Matmul, Elements);

TYPED_TEST(Matmul, EqualsTheDefinitionInEveryLayout) {
  using T = TypeParam;
  constexpr ProductScale<T> kScale{.alpha = 2, .beta = -1};
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {1, 9, 5}, {9, 1, 5}, {7, 5, 3}, {300, 17, 33}}) {
    for (int layouts = 0; layouts < 64; ++layouts) {
      const auto a = stored<T>(layouts & 3, m, k, 1);
      const auto b = stored<T>(layouts >> 2 & 3, k, n, 2);
      const auto out = stored<T>(layouts >> 4, m, n, 3);
      const Tensor<T> expected = plain_product<T>(a.view, b.view, to_tensor(out.view), kScale);
      matmul(a.view, b.view, out.view, kScale);
      expect_equal<T>(out.view, expected.view());
    }
  }
}

TYPED_TEST(Matmul, TakesBroadcastAndReversedViews) {
  using T = TypeParam;
  const Tensor<T> row = whole_numbers<T>({1, 4}, 1);
  const TensorView<const T> a = row.view().broadcast_to({6, 4});
  Tensor<T> memory = whole_numbers<T>({4, 5}, 2);
  const TensorView<const T> b(memory.data() + 15, {4, 5}, {-5, 1});
  Tensor<T> out(Shape{6, 5});
  const Tensor<T> expected = plain_product<T>(a, b, out.view(), {});
  matmul(a, b, out);
  expect_equal<T>(out.view(), expected.view());
}

TYPED_TEST(Matmul, LeavesTheGapsOfOutAlone) {
  using T = TypeParam;
  const Tensor<T> a = whole_numbers<T>({3, 2}, 1);
  Tensor<T> memory(Shape{3, 4});
  matmul(a, whole_numbers<T>({2, 2}, 2), memory.view().slice(1, 1, 3));
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(memory(i, 0), 0);
    EXPECT_EQ(memory(i, 3), 0);
  }
}

TYPED_TEST(Matmul, DoesNotReadOutWhenBetaIsZero) {
  using T = TypeParam;
  for (const int layout : {0, 1, 2, 3}) {
    for (const std::int64_t k : {0, 4}) {
      const auto out = stored<T>(layout, 5, 3, 1);
      for_each_element(out.view, [](T& x) { x = std::numeric_limits<T>::quiet_NaN(); });
      matmul(Tensor<T>(Shape{5, k}), Tensor<T>(Shape{k, 3}), out.view);
      for_each_element(out.view, [](T x) { EXPECT_EQ(x, 0); });
    }
  }
}

TYPED_TEST(Matmul, DefinesEmptySizes) {
  using T = TypeParam;
  Tensor<T> no_rows(Shape{0, 3});
  matmul(Tensor<T>(Shape{0, 2}), Tensor<T>(Shape{2, 3}), no_rows);
  Tensor<T> no_columns(Shape{3, 0});
  matmul(Tensor<T>(Shape{3, 2}), Tensor<T>(Shape{2, 0}), no_columns);
  Tensor<T> out({1, 2}, {3, 4});
  matmul(Tensor<T>(Shape{1, 0}), Tensor<T>(Shape{0, 2}), out, {.alpha = 1, .beta = 2});
  EXPECT_THAT(out.elements(), testing::ElementsAre(6, 8));
}

TYPED_TEST(Matmul, GivesTheSameBitsOnAnyNumberOfThreads) {
  using T = TypeParam;
  // Large enough to be divided by rows and by columns.
  for (const auto& [m, n] : std::vector<std::array<std::int64_t, 2>>{{515, 270}, {270, 515}}) {
    Tensor<T> a(Shape{m, 130});
    Tensor<T> b(Shape{130, n});
    for (std::int64_t i = 0; i < a.num_elements(); ++i) a.data()[i] = std::sin(static_cast<T>(i));
    for (std::int64_t i = 0; i < b.num_elements(); ++i) b.data()[i] = std::cos(static_cast<T>(i));
    std::vector<Tensor<T>> results;
    for (const int count : {1, 2, 7}) {
      set_num_threads(count);
      results.emplace_back(Shape{m, n});
      matmul(a, b, results.back());
    }
    set_num_threads(0);
    const std::size_t bytes = results[0].elements().size_bytes();
    EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), bytes), 0);
    EXPECT_EQ(std::memcmp(results[0].data(), results[2].data(), bytes), 0);
  }
}

// Divided by rows or by columns, each block equals the product of its part.
TYPED_TEST(Matmul, DividesLargeProducts) {
  using T = TypeParam;
  for (const auto& [m, n] : std::vector<std::array<std::int64_t, 2>>{{700, 200}, {200, 700}}) {
    const auto a = whole_numbers<T>({m, 131}, 1);
    const auto b = whole_numbers<T>({131, n}, 2);
    Tensor<T> whole(Shape{m, n});
    matmul(a, b, whole);
    for (std::int64_t row = 0; row < m; row += 50) {
      for (std::int64_t column = 0; column < n; column += 50) {
        Tensor<T> part(Shape{50, 50});
        matmul(a.view().slice(0, row, row + 50), b.view().slice(1, column, column + 50), part);
        expect_equal<T>(whole.view().slice(0, row, row + 50).slice(1, column, column + 50),
                        part.view());
      }
    }
  }
}

TYPED_TEST(Matmul, IsRightWhenManyThreadsMultiplyAtOnce) {
  using T = TypeParam;
  constexpr int kThreads = 8;
  constexpr int kProducts = 8000;  // concurrent short products collide most often
  std::atomic<int> wrong = 0;
  std::latch all_ready(kThreads);
  const auto multiply_and_compare = [&](std::uint32_t thread) {
    const Tensor<T> a = whole_numbers<T>({32, 32}, 2 * thread);
    const Tensor<T> b = whole_numbers<T>({32, 32}, 2 * thread + 1);
    Tensor<T> out(Shape{32, 32});
    const Tensor<T> expected = plain_product<T>(a, b, out.view(), {});
    all_ready.arrive_and_wait();
    for (int product = 0; product < kProducts; ++product) {
      matmul(a, b, out);
      if (std::memcmp(out.data(), expected.data(), out.elements().size_bytes()) != 0) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(multiply_and_compare, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0) << "of " << kThreads * kProducts << " products with " << blas_description();
}

TEST(MatmulErrors, NameTheArgument) {
  const Tensor<float> a(Shape{2, 3});
  Tensor<float> out(Shape{2, 2});
  EXPECT_THAT([&] { matmul(a, a, out); }, Refuses("a", "3"));
  EXPECT_THAT([&] { matmul(a, Tensor<float>(Shape{3, 4}), out); }, Refuses("out", "[2, 2]"));
  EXPECT_THAT([&] { matmul(a, Tensor<float>(Shape{3}), out); }, Refuses("b", "[3]"));
  const float zero = 0;
  const TensorView<const float> huge(&zero, {std::int64_t{1} << 31, 3}, {0, 0});
  EXPECT_THAT([&] { matmul(huge, a, out); },
              ThrowsMessage<InvalidArgument>(HasSubstr("extents up to 2147483647")));
}

TEST(BlasDescription, SaysWhichLibrary) { EXPECT_THAT(blas_description(), HasSubstr("OpenBLAS")); }

}  // namespace
}  // namespace heed
