/// Streams of numbers from other libraries.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "support/places.h"

namespace heed::testing_support {

/// The elements of tests/data/random/NAME.bin in order. take() and the checks consume them; the
/// destructor expects that none is left.
template <class T>
class Stream {
 public:
  explicit Stream(const std::string& name) {
    const std::string path = testing_support::test_data() + "/random/" + name + ".bin";
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path);
    const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
    elements_.resize(bytes.size() / sizeof(T));
    std::copy_n(bytes.data(), elements_.size() * sizeof(T),
                reinterpret_cast<char*>(elements_.data()));
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { EXPECT_EQ(next_, elements_.size()) << "elements of the stream were left over"; }

  std::span<const T> take(std::int64_t count) {
    const auto size = static_cast<std::size_t>(count);
    if (size > elements_.size() - next_) throw std::out_of_range("the stream has ended");
    next_ += size;
    return std::span(elements_).subspan(next_ - size, size);
  }

  /// Expects the next elements to equal those of `found` in row-major order.
  template <class U>
  void expect_equal(TensorView<const U> found) {
    const std::span<const T> expected = take(found.num_elements());
    std::size_t i = 0;
    for_each_element(found, [&](const U& element) {
      ASSERT_EQ(static_cast<T>(element), expected[i]) << "at " << i;
      ++i;
    });
  }
  template <class U>
  void expect_equal(const Tensor<U>& found) {
    expect_equal(found.view());
  }

  /// Expects the next elements to be those of `found` within `tolerance`, relative above 1 and
  /// absolute below.
  template <class U>
  void expect_near(TensorView<const U> found, double tolerance) {
    const std::span<const T> expected = take(found.num_elements());
    std::size_t i = 0;
    for_each_element(found, [&](const U& element) {
      const auto value = static_cast<double>(expected[i]);
      ASSERT_NEAR(element, value, tolerance * std::max(1.0, std::abs(value))) << "at " << i;
      ++i;
    });
  }
  template <class U>
  void expect_near(const Tensor<U>& found, double tolerance) {
    expect_near(found.view(), tolerance);
  }

 private:
  std::vector<T> elements_;
  std::size_t next_ = 0;
};

}  // namespace heed::testing_support
