#include "nn/product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "heed/core/parallel.h"
#include "nn/kernels/products.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing_support::normal;
using testing_support::same_bits;

// True if the kernels in use round a multiply-add once.
bool is_fused() {
  static const std::string vectors = product_kernels<float>().vectors;
  static const bool fused = vectors == "AVX512" || vectors == "AVX2" || vectors == "NEON";
  return fused;
}

// Returns out + a · b in the order that product() promises.
template <class T>
Tensor<T> in_order(TensorView<const T> a, TensorView<const T> b, TensorView<const T> out,
                   bool adds) {
  Tensor<T> result(out.shape());
  for (std::int64_t i = 0; i < out.extent(0); ++i) {
    for (std::int64_t j = 0; j < out.extent(1); ++j) {
      T sum = out(i, j);
      for (std::int64_t first = 0; first < a.extent(1); first += 64) {
        T part = 0;
        for (std::int64_t k = first; k < std::min<std::int64_t>(first + 64, a.extent(1)); ++k) {
          part = is_fused() ? std::fma(a(i, k), b(k, j), part) : part + a(i, k) * b(k, j);
        }
        sum = first == 0 && !adds ? part : sum + part;
      }
      result(i, j) = sum;
    }
  }
  return result;
}

// A copy of a matrix in one of several layouts.
template <class T>
struct Laid {
  Tensor<T> memory;
  TensorView<T> view;

  Laid(int layout, const Tensor<T>& matrix) {
    const std::int64_t rows = matrix.extent(0);
    const std::int64_t columns = matrix.extent(1);
    switch (layout) {
      case 0:
        memory = Tensor<T>({rows, columns});
        view = memory.view();
        break;
      case 1:  // transposed
        memory = Tensor<T>({columns, rows});
        view = memory.view().permute({1, 0});
        break;
      case 2:  // with gaps between rows
        memory = normal<T>({rows, columns + 5}, 9);
        view = memory.view().slice(1, 2, columns + 2);
        break;
      default:  // with gaps between all elements
        memory = normal<T>({rows, columns, 3}, 9);
        view = memory.view().select(2, 1);
        break;
    }
    const T* next = matrix.data();
    for_each_element(view, [&next](T& element) { element = *next++; });
  }
};

template <class T>
class Products : public testing::Test {};
using Numbers = testing::Types<float, double>;
TYPED_TEST_SUITE(Products, Numbers);

TYPED_TEST(Products, OfAllLayoutsHaveTheOrderOfPlainLoops) {
  using T = TypeParam;
  for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{1, 1, 1},
                                {5, 70, 9},
                                {9, 130, 51},
                                {3, 300, 25},
                                {8, 64, 48},
                                {2, 65, 73}}) {
    const Tensor<T> a = normal<T>({m, k}, 1);
    const Tensor<T> b = normal<T>({k, n}, 2);
    const Tensor<T> before = normal<T>({m, n}, 3);
    for (const bool adds : {false, true}) {
      const Tensor<T> expected = in_order<T>(a.view(), b.view(), before.view(), adds);
      for (int layouts = 0; layouts < 16; ++layouts) {
        const Laid<T> left(layouts / 4, a);
        const Laid<T> right(layouts % 4, b);
        const Laid<T> out(layouts == 2 ? 2 : 0, before);
        product<T>(left.view, right.view, out.view, adds);
        EXPECT_TRUE(same_bits(to_tensor(out.view), expected))
            << m << " × " << k << " × " << n << ", layouts " << layouts << ", adds " << adds;
      }
    }
  }
}

TYPED_TEST(Products, OfSomeRowsAndColumnsArePartOfAll) {
  using T = TypeParam;
  const Tensor<T> a = normal<T>({300, 70}, 1);
  const Tensor<T> b = normal<T>({200, 70}, 2);
  const TensorView<const T> columns = b.view().permute({1, 0});
  Tensor<T> all({300, 200});
  product<T>(a.view(), columns, all.view());
  for (const int threads : {1, 5}) {
    set_num_threads(threads);
    for (const std::int64_t first : {0, 1, 255, 260}) {
      Tensor<T> some({40, 77});
      product<T>(a.view().slice(0, first, first + 40), columns.slice(1, 100, 177), some.view());
      const TensorView<const T> part = all.view();
      EXPECT_TRUE(same_bits(some, to_tensor(part.slice(0, first, first + 40).slice(1, 100, 177))));
    }
  }
  set_num_threads(0);
}

TYPED_TEST(Products, WithoutStepsAreZero) {
  using T = TypeParam;
  const Tensor<T> a({3, 0});
  const Tensor<T> b({0, 4});
  const Tensor<T> before = normal<T>({3, 4}, 1);
  Tensor<T> out = before;
  product<T>(a.view(), b.view(), out.view(), true);
  EXPECT_TRUE(same_bits(out, before));
  product<T>(a.view(), b.view(), out.view());
  EXPECT_TRUE(same_bits(out, Tensor<T>({3, 4})));
}

// Numbers beside a matrix, and zeros that fill a panel, never reach a result.
TYPED_TEST(Products, DoNotSpreadNaN) {
  using T = TypeParam;
  Tensor<T> a({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor<T> b({3, 2}, {1, 2, 3, testing_support::kInfinity, 5, 6});
  Tensor<T> out({2, 2});
  product<T>(a.view(), b.view(), out.view());
  EXPECT_EQ(out(0, 0), 22);
  EXPECT_EQ(out(1, 0), 49);
  EXPECT_EQ(out(0, 1), testing_support::kInfinity);
}

}  // namespace

}  // namespace heed::nn
